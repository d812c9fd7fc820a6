"""`min` and `max` of types that fit a word; for longer values see `picks`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots, valid_mask
from headrace._runtime.aggregates.words import from_words, words_array
from headrace._runtime.state import ValueSpec

__all__ = ["Extreme"]

_LEAST = -(2**63)
_GREATEST = 2**63 - 1


class Extreme(Fold):
    """A word and whether there is one. An empty slot holds the word that loses against all others."""

    def __init__(self, name: str, column: str, kind: pa.DataType, *, greatest: bool) -> None:
        self._column = column
        self._kind = kind
        self._function = "max" if greatest else "min"
        self._better = np.maximum if greatest else np.minimum
        self._neutral = _LEAST if greatest else _GREATEST
        self._word = f"{name}.word"
        self._has = f"{name}.has"
        self.reads = (column,)
        self.columns = (
            ValueSpec(self._word, pa.int64(), self._neutral),
            ValueSpec(self._has, pa.bool_(), False),
        )
        self.parts = (pa.field(self._word, pa.int64()),)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow compares words."""
        return (Request(words_array(flush.columns[self._column]), self._function),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The words as they are; null where there was none."""
        return folded

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Keep the better word."""
        (part,) = parts
        valid = valid_mask(part)
        if valid is not None:
            slots, part = slots[valid], part.drop_null()
        words = into.values(self._word)
        words[slots] = self._better(words[slots], part.to_numpy())
        into.values(self._has)[slots] = True

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The words."""
        has = source.get(self._has, slots)
        return (pa.array(source.get(self._word, slots), mask=None if has.all() else ~has),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The values, null where there is none."""
        return from_words(source.get(self._word, slots), self._kind, source.get(self._has, slots))
