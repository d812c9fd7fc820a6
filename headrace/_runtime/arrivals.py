"""The order of arrival of a step's rows: a number for every row that grows with each batch of its key group.

Panes are kept apart by event time, so when several are put together their order of arrival is lost, unless it was
written down. It is, for the aggregates that promise it; and joins tell the rows of a key apart by it. One counter a key
group moves with the group's state when the number of shards changes, and is forgotten when no row is left.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.state import ShardState, Table, TableSpec, ValueSpec
from headrace.keys import KEY_GROUPS, key_groups, lowest_hashes

__all__ = ["ARRIVALS", "PLACE_BITS", "Arrivals"]

#: The table of counters; it has one bucket.
ARRIVALS = TableSpec(
    "arrivals", pa.schema([("group", pa.uint8())]), (ValueSpec("batches", pa.int64(), 0),)
)
_BUCKET = 0
#: Below these bits there is room for the place of a row in its fold.
PLACE_BITS = 32


class Arrivals:
    """Counts the batches of each key group."""

    def __init__(self, state: ShardState) -> None:
        self._state = state

    def count(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """A batch of these keys arrived: what to add to the place of each row in it."""
        groups = key_groups(hashes)
        present = np.flatnonzero(np.bincount(groups, minlength=KEY_GROUPS))
        table = self._state.table(ARRIVALS.name, _BUCKET)
        slots = _slots(table, present)
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


def _slots(table: Table, groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The slots of the counters of these groups."""
    slots = np.full(KEY_GROUPS, -1)
    live = table.live()
    slots[table.key(0, live).to_numpy()] = live
    new = groups[slots[groups] < 0]
    if len(new):
        # A group's own hash lies in the group, so its counter is found wherever the group goes. All of them begin to
        # look for it in the same cell, so it is looked for here only when it is not there.
        numbers = new.astype(np.uint8)
        slots[new], _ = table.upsert(lowest_hashes(numbers), [pa.array(numbers)])
    return slots[groups]
