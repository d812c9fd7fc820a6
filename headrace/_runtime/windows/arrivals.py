"""The order of arrival across panes: a number for every row that grows with each batch of its key group.

Panes are kept apart by event time, so when several are put together their order of arrival is lost, unless it was
written down. It is, for the aggregates that promise it. One counter a key group moves with the group's
state when the number of shards changes, and is forgotten with the last pane.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.state import ShardState, TableSpec, ValueSpec
from headrace.keys import KEY_GROUPS, key_groups

__all__ = ["ARRIVALS", "PLACE_BITS", "Arrivals"]

#: The table of counters; it has one bucket.
ARRIVALS = TableSpec(
    "arrivals", pa.schema([("group", pa.uint8())]), (ValueSpec("batches", pa.int64(), 0),)
)
_BUCKET = 0
#: Below these bits there is room for the place of a row in its fold.
PLACE_BITS = 32
_GROUP_SHIFT = np.uint64(57)


class Arrivals:
    """Counts the batches of each key group."""

    def __init__(self, state: ShardState) -> None:
        self._state = state

    def count(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """A batch of these keys arrived: what to add to the place of each row in it."""
        groups = key_groups(hashes)
        present = np.unique(groups)
        table = self._state.table(ARRIVALS.name, _BUCKET)
        # A group's own hash lies in the group, so its counter is found wherever the group goes.
        slots, _ = table.upsert(present.astype(np.uint64) << _GROUP_SHIFT, [pa.array(present)])
        batches = table.values("batches")
        batches[slots] += 1
        table.touch(slots)
        numbers = np.zeros(KEY_GROUPS, np.int64)
        numbers[present] = batches[slots]
        return numbers[groups] << PLACE_BITS

    def forget(self) -> None:
        """No pane is left to be put in order."""
        if self._state.buckets(ARRIVALS.name):
            table = self._state.table(ARRIVALS.name, _BUCKET)
            table.remove(table.live())
