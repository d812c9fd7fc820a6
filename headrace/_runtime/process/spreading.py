"""Feeders of rows that no key sends to a shard: broadcast ones go to all, those without keys are dealt out.

Which shard a dealt row goes to follows from its place in its source, so neither a replay nor the number of tasks
that read changes it. Behind a shuffle, where that is not known, rows are dealt out in turn.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.nodes import KeyedProcess
from headrace._runtime.operator import HASH, Feeder, Outputs
from headrace._runtime.process.feeder import OFFSET, PARTITION, SOURCE, ProcessFeeder
from headrace._runtime.rows import Rows
from headrace.keys import KEY_GROUPS, lowest_hashes

__all__ = [
    "BroadcastFeeder",
    "Dealing",
    "DealtFeeder",
    "dealt",
    "in_source_order",
    "process_feeder",
]

Numbers = npt.NDArray[np.int64]

_GROUP_BITS = KEY_GROUPS.bit_length() - 1


def _reversed_bits() -> npt.NDArray[np.uint64]:
    texts = [f"{number:0{_GROUP_BITS}b}"[::-1] for number in range(KEY_GROUPS)]
    return np.array([int(text, 2) for text in texts], np.uint64)


#: Numbers in a row lie as far apart as can be, however many of them there are and whatever the number of shards.
_APART = _reversed_bits()


def process_feeder(node: KeyedProcess, side: int) -> Feeder:
    """The feeder of one input of a process step."""
    if node.kind == "broadcast" and side == 1:
        return BroadcastFeeder(node, side)
    return ProcessFeeder(node, side) if node.keys[side] else DealtFeeder(node, side)


class BroadcastFeeder(ProcessFeeder):
    """Sends every row to every shard. It is counted here, once."""

    everywhere: ClassVar[bool] = True


class DealtFeeder(ProcessFeeder):
    """Deals rows out to the shards; those of one shard stay in the order of their arrival."""

    in_order: ClassVar[bool] = True

    def __init__(self, node: KeyedProcess, side: int) -> None:
        super().__init__(node, side)
        # working state
        self._dealing = Dealing()

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; all can be used."""
        self._dealing.note(rows)
        yield from super().feed(rows, watermark)

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What was fed."""
        yield from self._dealing.dealt(super().flush())


class Dealing:
    """Where the rows of one task go that no key sends anywhere."""

    def __init__(self) -> None:
        self._fed = 0
        self._hashes: list[npt.NDArray[np.uint64]] = []

    def note(self, rows: Rows) -> None:
        """These rows are fed next."""
        self._hashes.append(dealt(rows, self._fed))
        self._fed += len(rows)

    def dealt(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows noted so far, as they were fed, with the hashes that send them to their shards."""
        hashes = np.concatenate(self._hashes) if self._hashes else np.empty(0, np.uint64)
        self._hashes = []
        start = 0
        for batch in batches:
            mine = pa.array(hashes[start : start + batch.num_rows])
            start += batch.num_rows
            yield batch.set_column(batch.schema.get_field_index(HASH), HASH, mine)


def in_source_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Broadcast rows by source, partition and offset; behind a shuffle, where these are not known, as they came."""
    order = [(name, "ascending") for name in (SOURCE, PARTITION, OFFSET)]
    return batch.take(pc.sort_indices(batch, order))


def dealt(rows: Rows, first: int) -> npt.NDArray[np.uint64]:
    """A hash for each row that sends it to some shard; the first of them is row number `first` of its task."""
    origin = rows.origin
    numbers: Numbers
    if origin is None:
        numbers = np.arange(first, first + len(rows))
    else:
        # Partitions begin at different shards, or short ones would all go to the first.
        numbers = origin.offsets + zlib.crc32(f"{origin.source}/{origin.partition}".encode())
    return lowest_hashes(_APART[numbers % KEY_GROUPS])
