"""The keys that an epoch touches, numbered from 0 in the order in which it comes to them.

Everything that the epoch keeps about a key in memory stands in lists, at the key's number, its code. A key is read
from state when it is numbered and written when the epoch settles, whatever happens to it in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.columns import values
from headrace._runtime.plain_keys import number_by_hash, number_keys
from headrace._runtime.state import MemoryArrays, Table, TableSpec

__all__ = ["Touched", "key_objects"]

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class Touched:
    """Keys by code: a table that lives for an epoch, whose slots are the codes."""

    def __init__(self, keys: pa.Schema) -> None:
        self._table = Table(TableSpec("touched", keys), MemoryArrays())
        #: As functions see them; those of the last codes may be missing until `show`.
        self.objects: list[Any] = []

    def __len__(self) -> int:
        return self._table.size

    def codes(self, hashes: Hashes, columns: Sequence[pa.Array]) -> Integers:
        """The code of each row's key; new keys are numbered."""
        numbers, firsts = number_keys(columns)
        if not len(firsts):
            return numbers
        places = pa.array(firsts)
        codes, _ = self._table.upsert(hashes[firsts], [column.take(places) for column in columns])
        return codes[numbers]

    def codes_by_hash(self, columns: Sequence[pa.Array]) -> Integers:
        """The same for keys as they lie in tables: where that is depends on restarts, their numbers must not."""
        numbers, distinct, hashes = number_by_hash(columns)
        codes, _ = self._table.upsert(hashes, distinct)
        return codes[numbers]

    def show(self) -> None:
        """Make the objects of all keys; most steps ask for few of them, or none."""
        codes = np.arange(len(self.objects), len(self))
        if len(codes):
            self.objects += key_objects(self.columns(codes))

    def key_of(self, code: Any) -> Any:
        """The object of one key; None of what has none."""
        if not isinstance(code, int):
            return None
        self.show()
        return self.objects[code]

    def hashes(self, codes: Integers) -> Hashes:
        """The hashes of these keys."""
        return self._table.hashes(codes)

    def columns(self, codes: Integers) -> list[pa.Array]:
        """The key columns of these keys."""
        return self._table.keys(codes)


def key_objects(columns: Sequence[pa.Array]) -> list[Any]:
    """Keys as functions see them: the value, or a tuple of several."""
    if len(columns) == 1:
        return values(columns[0])
    return list(zip(*map(values, columns), strict=True))
