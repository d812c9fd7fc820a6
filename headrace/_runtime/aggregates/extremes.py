"""`min` and `max` of types that fit a word; for longer values see `picks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Flush, Request, Slots
from headrace._runtime.aggregates.numbers import OneNumber
from headrace._runtime.aggregates.words import from_words, words_array

__all__ = ["Extreme"]

_LEAST = -(2**63)
_GREATEST = 2**63 - 1


class Extreme(OneNumber):
    """A word. An empty slot holds the one that loses against all others."""

    def __init__(self, name: str, column: str, kind: pa.DataType, *, greatest: bool) -> None:
        neutral = _LEAST if greatest else _GREATEST
        super().__init__(name, "word", column, kind=pa.int64(), neutral=neutral)
        self._kind = kind
        self._function = "max" if greatest else "min"
        self._better = np.maximum if greatest else np.minimum

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow compares words."""
        return (Request(words_array(flush.columns[self._column]), self._function),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The values, null where there is none."""
        return from_words(source.get(self._number, slots), self._kind, source.get(self._has, slots))

    def _combine(self, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
        best: npt.NDArray[Any] = self._better(a, b)
        return best
