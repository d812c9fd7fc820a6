"""Half of all rows have one key: all pairs come, in portions, and rows outside of the interval cost nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import MAIN
from headrace._runtime import registry
from headrace._runtime.joins.matching import PAIRS
from headrace._runtime.operator import Moment
from headrace._runtime.rows import Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from tests.runtime.joins.interval.interval_cases import interval_node

SCHEMA = pa.schema({"key": pa.int64(), "n": pa.int64()})


def sides(rows: int, step_us: int) -> list[tuple[Rows, int]]:
    """Rows of both sides, every other one with key 0."""
    n = np.arange(rows)
    keys = np.where(n % 2 == 0, 0, n)
    batch = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(n)], schema=SCHEMA)
    return [(Rows(batch, n * step_us + 1), side) for side in (0, 1)]


def joined(node: Any, rows: list[tuple[Rows, int]]) -> Iterator[Rows]:
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    operator = registry.keyed(node, state)
    list(operator.tick(Moment(0, 0, 0, 0)))
    for mine, side in rows:
        feeder = registry.feeder(node, side)
        list(feeder.feed(mine, 0))
        for batch in feeder.flush():
            operator.merge(batch, side)
    for output, made in operator.settle():
        assert output == MAIN
        yield made


def test_all_pairs_of_one_key_come_in_portions() -> None:
    rows, pairs, most = 4_000, 0, 0
    node = interval_node(-1_000_000, 1_000_000, "full", schemas=[SCHEMA, SCHEMA])
    held = pa.total_allocated_bytes()
    for made in joined(node, sides(rows, 1)):
        pairs += len(made)
        most = max(most, pa.total_allocated_bytes() - held)
        assert len(made) <= PAIRS
    assert pairs == (rows // 2) ** 2 + rows // 2
    # Of results alone all pairs would be four times as much as this.
    assert most < 32 * PAIRS * 3


def test_one_row_with_very_many_partners_is_no_exception() -> None:
    node = interval_node(-1_000_000, 1_000_000, schemas=[SCHEMA, SCHEMA])
    many = PAIRS + 10
    batch = pa.RecordBatch.from_arrays(
        [pa.array(np.zeros(many, np.int64)), pa.array(np.arange(many))], schema=SCHEMA
    )
    left = Rows(batch, np.arange(many) // 1000 + 1)
    right = Rows(batch[:1], np.array([1]))
    sizes = [len(made) for made in joined(node, [(left, 0), (right, 1)])]
    assert sizes == [PAIRS, 10]


def test_rows_of_the_key_that_lie_outside_are_not_looked_at() -> None:
    # A hundred thousand of the key on either side, each with one partner: ten milliards of pairs to look at otherwise.
    node = interval_node(0, 0, schemas=[SCHEMA, SCHEMA])
    began = time.process_time()
    assert sum(len(made) for made in joined(node, sides(200_000, 1))) == 200_000
    assert time.process_time() - began < 20
