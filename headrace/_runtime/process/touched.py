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
import pyarrow.types as pt

from headrace._runtime.columns import values
from headrace._runtime.plain_keys import number_keys

__all__ = ["Touched", "key_objects"]

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_NAN = object()


class Touched:
    """Keys by code."""

    def __init__(self, keys: pa.Schema) -> None:
        self._floats = any(pt.is_floating(kind) for kind in keys.types)
        self._codes: dict[Any, int] = {}
        #: As functions see them.
        self.objects: list[Any] = []
        self._hashes: list[Hashes] = []
        self._columns: list[list[pa.Array]] = []

    def __len__(self) -> int:
        return len(self.objects)

    def codes(self, hashes: Hashes, columns: Sequence[pa.Array]) -> Integers:
        """The code of each row's key; new keys are numbered."""
        numbers, firsts = number_keys(columns)
        if not len(firsts):
            return numbers
        places = pa.array(firsts)
        found = key_objects([column.take(places) for column in columns])
        codes, fresh = self._number(found)
        if fresh:
            new = firsts[np.array(fresh, np.int64)]
            self._hashes.append(hashes[new])
            self._columns.append([column.take(pa.array(new)) for column in columns])
        return codes[numbers]

    def hashes(self, codes: Integers) -> Hashes:
        """The hashes of these keys."""
        if len(self._hashes) > 1:
            self._hashes = [np.concatenate(self._hashes)]
        return self._hashes[0][codes]

    def columns(self, codes: Integers) -> list[pa.Array]:
        """The key columns of these keys."""
        if len(self._columns) > 1:
            parts = zip(*self._columns, strict=True)
            self._columns = [[pa.concat_arrays(part) for part in parts]]
        places = pa.array(codes)
        return [column.take(places) for column in self._columns[0]]

    def _number(self, found: list[Any]) -> tuple[Integers, list[int]]:
        known, objects = self._codes, self.objects
        codes, fresh = [], []
        names = [_name(key) for key in found] if self._floats else found
        for place, name in enumerate(names):
            code = known.get(name)
            if code is None:
                code = known[name] = len(objects)
                objects.append(found[place])
                fresh.append(place)
            codes.append(code)
        return np.array(codes, np.int64), fresh


def key_objects(columns: Sequence[pa.Array]) -> list[Any]:
    """Keys as functions see them: the value, or a tuple of several."""
    if len(columns) == 1:
        return values(columns[0])
    return list(zip(*map(values, columns), strict=True))


def _name(key: Any) -> Any:
    """What a dictionary finds a key by: a NaN is not equal to itself."""
    if isinstance(key, tuple):
        return tuple(map(_name, key))
    return _NAN if key != key else key  # noqa: PLR0124 - a NaN
