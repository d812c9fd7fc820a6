"""Which shard rows without keys go to, and the order of broadcast rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime.process.feeder import OFFSET, PARTITION, SOURCE
from headrace._runtime.process.spreading import dealt, in_source_order
from headrace._runtime.rows import Origin, Rows
from headrace.keys import key_groups, shards_of


def rows(count: int, origin: Origin | None = None) -> Rows:
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(count))], names=["n"])
    return Rows(batch, None, origin)


def shards(hashes: np.ndarray, count: int) -> list[int]:
    return np.bincount(shards_of(key_groups(hashes), count), minlength=count).tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 7, 128])
@pytest.mark.parametrize("many", [1, 5, 40, 1000])
def test_rows_in_a_row_are_dealt_evenly(count: int, many: int) -> None:
    origin = Origin("source", "0", np.arange(17, 17 + many))
    for hashes in (dealt(rows(many), 3), dealt(rows(many, origin), 0)):
        found = shards(hashes, count)
        assert max(found) - min(found) <= max(3, many // 64)


def test_a_row_goes_where_its_place_says_whoever_reads_it() -> None:
    whole = dealt(rows(100, Origin("source", "0", np.arange(100))), 0)
    part = dealt(rows(40, Origin("source", "0", np.arange(60, 100))), 12)
    assert (whole[60:] == part).all()


def test_short_partitions_do_not_all_begin_at_the_same_shard() -> None:
    first = [dealt(rows(1, Origin("s", str(p), np.array([0]))), 0)[0] for p in range(64)]
    assert len(set(shards_of(key_groups(np.array(first, np.uint64)), 4))) == 4


def test_broadcast_rows_come_by_source_partition_and_offset_and_else_as_they_came() -> None:
    places = [("b", "0", 1), ("a", "1", 0), ("a", "0", 7), ("a", "0", 7), (None, None, None)] * 2
    columns = [pa.array(column) for column in zip(*places, strict=True)]
    batch = pa.RecordBatch.from_arrays(
        [*columns, pa.array(range(10))], names=[SOURCE, PARTITION, OFFSET, "n"]
    )
    assert in_source_order(batch).column("n").to_pylist() == [2, 3, 7, 8, 1, 6, 0, 5, 4, 9]
