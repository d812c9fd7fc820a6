"""`approx_top`: the items that occur most, from a sketch of frequent items.

Items are put into it as text, because its hash of text is the same in every process; how a value is written as
text and read back is decided by its type. A group's items are counted first, so each is put in once a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import datasketches as ds
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace._runtime.aggregates.lists import lists_of
from headrace._runtime.aggregates.sketches import Sketch
from headrace._runtime.aggregates.words import from_words, has_words, to_words
from headrace._runtime.plain_keys import plain_key, plain_key_type

__all__ = ["TopSketch"]

#: An item that may belong to the top is among those that are listed.
_ALL = ds.frequent_items_error_type.NO_FALSE_NEGATIVES

#: An item and its estimate, first in a tuple that also has the bounds.
Found = Sequence[Any]


class TopSketch(Sketch):
    """Misra-Gries over items as text."""

    def __init__(
        self, name: str, column: str, kind: pa.DataType, result: pa.DataType, *, n: int, lg_k: int
    ) -> None:
        super().__init__(name, column)
        self._kind = plain_key_type(kind)
        self._result = result
        self._n = n
        self._lg_k = lg_k

    def _values(self, column: pa.Array) -> pa.Array:
        return plain_key(column)

    def _build(self, values: pa.Array, edges: Sequence[int]) -> Iterator[bytes]:
        encoded = values.dictionary_encode()
        texts = _to_texts(encoded.dictionary)
        width = max(1, len(texts))
        owners = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        pairs, counts = np.unique(owners * width + encoded.indices.to_numpy(), return_counts=True)
        ends = np.searchsorted(pairs, np.arange(len(edges)) * width).tolist()
        codes, weights = (pairs % width).tolist(), counts.tolist()
        for start, end in pairwise(ends):
            sketch = ds.frequent_strings_sketch(self._lg_k)
            update = sketch.update
            for code, weight in zip(codes[start:end], weights[start:end], strict=True):
                update(texts[code], weight)
            yield sketch.serialize()

    def _merge(self, a: bytes, b: bytes) -> bytes:
        sketch = ds.frequent_strings_sketch.deserialize(a)
        sketch.merge(ds.frequent_strings_sketch.deserialize(b))
        return bytes(sketch.serialize())

    def _read(self, sketches: Sequence[bytes | None]) -> pa.Array:
        found = [[] if sketch is None else self._found(sketch) for sketch in sketches]
        owners = np.repeat(np.arange(len(found)), list(map(len, found)))
        counts = np.array([row[1] for rows in found for row in rows], np.int64)
        items = _from_texts([row[0] for rows in found for row in rows], self._kind)
        order = np.lexsort((_ranks(items), -counts, owners))
        # Sorted by sketch, so a row's place less that of its sketch's first is its place in the list.
        firsts = np.searchsorted(owners, np.arange(len(found)))
        kept = order[np.arange(len(order)) - firsts[owners] < self._n]
        item, count = self._result.value_type
        structs = pa.StructArray.from_arrays(
            [items.take(pa.array(kept)).cast(item.type), pa.array(counts[kept])],
            fields=[item, count],
        )
        return lists_of(structs, np.bincount(owners[kept], minlength=len(found)), self._result)

    def _found(self, sketch: bytes) -> list[Found]:
        """The items that are among the top, or would be if ties were broken in their favour."""
        rows = ds.frequent_strings_sketch.deserialize(sketch).get_frequent_items(_ALL)
        if len(rows) <= self._n:
            return list(rows)
        least = sorted((row[1] for row in rows), reverse=True)[self._n - 1]
        return [row for row in rows if row[1] >= least]


def _to_texts(values: pa.Array) -> list[str]:
    kind = values.type
    if pt.is_string(kind) or pt.is_large_string(kind):
        return list(values.to_pylist())
    if has_words(kind):
        return list(map(str, to_words(values).tolist()))
    write: Callable[[Any], str] = str if pt.is_decimal(kind) else _bytes_as_text
    return [write(value) for value in values.to_pylist()]


def _from_texts(texts: list[str], kind: pa.DataType) -> pa.Array:
    if pt.is_string(kind) or pt.is_large_string(kind):
        return pa.array(texts, kind)
    if has_words(kind):
        return from_words(np.array(list(map(int, texts)), np.int64), kind, None)
    read: Callable[[str], Any] = Decimal if pt.is_decimal(kind) else _text_as_bytes
    return pa.array([read(text) for text in texts], kind)


def _bytes_as_text(value: bytes) -> str:
    # Every byte is a character there, and every such character a byte.
    return value.decode("latin-1")


def _text_as_bytes(text: str) -> bytes:
    return text.encode("latin-1")


def _ranks(items: pa.Array) -> Any:
    """Numbers in the order of the items."""
    if has_words(items.type):
        return to_words(items)
    return pc.rank(items, tiebreaker="dense").to_numpy()
