"""The heaviest keys of a task's folds: which keys make a shard slow, known where the rows are grouped anyway.

Rows are grouped by key, and most often by pane. Groups with more than 1/256 of a fold's rows are kept, with exactly the
rows that they had in it, and put together by key: a count may be too low, never too high, and where keys are alike
none is reported. If no aggregate counts rows, they are counted for this only where a sample of the fold has a key that
occurs again and again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from headrace._runtime.payload import as_json
from headrace._runtime.plain_keys import number_keys

__all__ = ["HeavyKeys", "heaviest"]

_KEPT = 8
_SHARE_BITS = 8
#: Where a sample is taken, as shares of the rows: at random, but the same places in every run.
_PLACES = np.random.default_rng(0).random(4096)


class HeavyKeys:
    """Keys as JSON objects and their rows. A step without keys has one key, which is no news."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._rows: dict[str, int] = {}

    @property
    def found(self) -> Mapping[str, int]:
        """The heaviest keys so far and their rows, heaviest first."""
        return heaviest(self._rows, _KEPT)

    def suspects(self, keys: Sequence[pa.Array]) -> bool:
        """Whether a fold of these rows may have a heavy key; the columns of the key come first."""
        rows = len(keys[0])
        if not self._names or rows <= len(_PLACES):
            return bool(self._names)
        places = pa.array((_PLACES * rows).astype(np.int64))
        numbers, _ = number_keys([key.take(places) for key in keys[: len(self._names)]])
        # Half of what a key needs: one that has it all is missed in about one of a hundred samples.
        return int(np.bincount(numbers).max()) > len(_PLACES) >> (_SHARE_BITS + 1)

    def see(self, groups: Sequence[pa.Array], counts: pa.Array) -> None:
        """A fold had these distinct groups, the columns of the key first, with so many rows each."""
        if not self._names:
            return
        rows = counts.to_numpy()
        heavy = np.flatnonzero(rows > int(rows.sum()) >> _SHARE_BITS)
        places = pa.array(heavy)
        keys = [group.take(places) for group in groups[: len(self._names)]]
        shown = as_json(pa.RecordBatch.from_arrays(keys, names=self._names))
        for key, count in zip(shown, rows[heavy].tolist(), strict=True):
            self._rows[key] = self._rows.get(key, 0) + count


def heaviest(rows: Mapping[str, int], most: int) -> dict[str, int]:
    """So many of the keys with the most rows, heaviest first, among equals by their text."""
    ordered = sorted(rows.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:most])
