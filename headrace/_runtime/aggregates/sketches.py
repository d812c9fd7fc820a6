"""Folds on sketches of Apache DataSketches: one sketch a key, kept and shuffled as its own serialised bytes.

A fold makes one sketch for every group, from a slice of the rows sorted by group. A slot that has no sketch yet
takes the bytes as they are; only where two sketches meet are they read, merged and written again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import datasketches as ds
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.aggregates.fold import (
    Columns,
    Flush,
    Fold,
    Request,
    Slots,
    valid_mask,
)
from headrace._runtime.aggregates.lists import keep_items, lengths
from headrace._runtime.plain_keys import plain_key
from headrace._runtime.state import ValueSpec
from headrace.keys import hash_keys

__all__ = ["DistinctSketch", "QuantileSketch", "Sketch"]

#: Half a million sketches of some kilobytes are more than 32-bit offsets reach.
_BYTES = pa.large_binary()


class Sketch(Fold, ABC):
    """One sketch a key; null where there was no value."""

    def __init__(self, name: str, column: str) -> None:
        self._column = column
        self._sketch = f"{name}.sketch"
        self.reads = (column,)
        self.columns = (ValueSpec(self._sketch, _BYTES, None),)
        self.parts = (pa.field(self._sketch, _BYTES),)

    @abstractmethod
    def _values(self, column: pa.Array) -> pa.Array:
        """What is put into a sketch, null where nothing is."""

    @abstractmethod
    def _build(self, values: pa.Array, edges: Sequence[int]) -> Iterator[bytes]:
        """A sketch for each slice of the values between two edges."""

    @abstractmethod
    def _merge(self, a: bytes, b: bytes) -> bytes:
        """One sketch for the values of both."""

    @abstractmethod
    def _read(self, sketches: Sequence[bytes | None]) -> pa.Array:
        """What sketches say."""

    def requests(self, flush: Flush) -> Sequence[Request]:
        """The rows of each group."""
        return (Request(flush.places, "list"),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """One sketch for every group that has a value."""
        values = self._values(flush.columns[self._column])
        rows = folded[0]
        valid = valid_mask(values)
        if valid is not None:
            rows = keep_items(rows, valid[rows.flatten().to_numpy()])
        sizes = lengths(rows)
        edges = [0, *np.cumsum(sizes[sizes > 0]).tolist()]
        built = pa.array(list(self._build(values.take(rows.flatten()), edges)), _BYTES)
        return (built if valid is None else _spread(built, sizes > 0),)

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Take sketches over, or merge them where there is one already."""
        (part,) = parts
        valid = valid_mask(part)
        if valid is not None:
            slots, part = slots[valid], part.drop_null()
        old = into.get(self._sketch, slots)
        taken = valid_mask(old)
        if taken is None or taken.any():
            both = np.ones(len(old), np.bool_) if taken is None else taken
            pairs = zip(_only(old, both), _only(part, both), strict=True)
            merged = [self._merge(a, b) for a, b in pairs]
            into.put(self._sketch, slots[both], pa.array(merged, _BYTES))
            slots, part = slots[~both], part.filter(pa.array(~both))
        if len(slots):
            into.put(self._sketch, slots, part)

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The sketches."""
        return (source.get(self._sketch, slots),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """What the sketches say."""
        return self._read(source.get(self._sketch, slots).to_pylist())


class QuantileSketch(Sketch):
    """KLL over float64. One rank gives a number, several give a list."""

    def __init__(
        self, name: str, column: str, ranks: Sequence[float], *, k: int, as_list: bool
    ) -> None:
        super().__init__(name, column)
        self._ranks = list(ranks)
        self._lowest = [place for place, rank in enumerate(ranks) if rank == 0]
        self._highest = [place for place, rank in enumerate(ranks) if rank == 1]
        self._k = k
        self._as_list = as_list

    def _values(self, column: pa.Array) -> pa.Array:
        numbers = column.cast(pa.float64(), safe=False)
        # A sketch ignores NaN, so a group of nothing else must not get one.
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(numbers)).as_py():
            return pc.if_else(pc.is_nan(numbers), None, numbers)
        return numbers

    def _build(self, values: pa.Array, edges: Sequence[int]) -> Iterator[bytes]:
        # The library takes no array that it may not write to, and Arrow gives no other without a copy.
        numbers = values.to_numpy(zero_copy_only=False).copy()
        for start, end in pairwise(edges):
            sketch = ds.kll_doubles_sketch(self._k)
            sketch.update(numbers[start:end])
            yield sketch.serialize()

    def _merge(self, a: bytes, b: bytes) -> bytes:
        sketch = ds.kll_doubles_sketch.deserialize(a)
        sketch.merge(ds.kll_doubles_sketch.deserialize(b))
        return bytes(sketch.serialize())

    def _read(self, sketches: Sequence[bytes | None]) -> pa.Array:
        lists = [None if sketch is None else self._quantiles(sketch) for sketch in sketches]
        if self._as_list:
            return pa.array(lists, pa.list_(pa.float64()))
        return pa.array([None if one is None else one[0] for one in lists], pa.float64())

    def _quantiles(self, serialised: bytes) -> list[float]:
        sketch = ds.kll_doubles_sketch.deserialize(serialised)
        found: list[float] = sketch.get_quantiles(self._ranks, True)
        # The ends are known exactly, but a sketch says only what it kept.
        for place in self._lowest:
            found[place] = sketch.get_min_value()
        for place in self._highest:
            found[place] = sketch.get_max_value()
        return found


class DistinctSketch(Sketch):
    """HyperLogLog over the hashes of values, so equal values count once whatever their type."""

    def __init__(self, name: str, column: str, *, lg_k: int) -> None:
        super().__init__(name, column)
        self._lg_k = lg_k

    def _values(self, column: pa.Array) -> pa.Array:
        words = hash_keys([plain_key(column)]).view(np.int64)
        valid = valid_mask(column)
        return pa.array(words, mask=None if valid is None else ~valid)

    def _build(self, values: pa.Array, edges: Sequence[int]) -> Iterator[bytes]:
        words = values.to_numpy().tolist()
        for start, end in pairwise(edges):
            sketch = ds.hll_sketch(self._lg_k, ds.HLL_8)
            update = sketch.update
            for word in words[start:end]:
                update(word)
            yield sketch.serialize_compact()

    def _merge(self, a: bytes, b: bytes) -> bytes:
        return bytes(self._union(a, b).get_result(ds.HLL_8).serialize_compact())

    def _read(self, sketches: Sequence[bytes | None]) -> pa.Array:
        # A sketch that was never merged estimates from the order of its values. United with itself it
        # does not, and then it does not matter how the rows were divided.
        counts = [
            0 if sketch is None else round(self._union(sketch, sketch).get_estimate())
            for sketch in sketches
        ]
        return pa.array(counts, pa.int64())

    def _union(self, a: bytes, b: bytes) -> Any:
        union = ds.hll_union(self._lg_k)
        for sketch in (a, b):
            union.update(ds.hll_sketch.deserialize(sketch))
        return union


def _only(array: pa.Array, mask: npt.NDArray[np.bool_]) -> list[Any]:
    """The values where the mask is true."""
    return list(array.filter(pa.array(mask)).to_pylist())


def _spread(values: pa.Array, places: npt.NDArray[np.bool_]) -> pa.Array:
    """The values at the places, null elsewhere."""
    numbers = np.cumsum(places) - 1
    return values.take(pa.array(numbers, mask=~places))
