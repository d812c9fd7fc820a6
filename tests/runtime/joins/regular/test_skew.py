"""Half of all rows on one key: all pairs come, in portions of a bounded size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._graph.changes import CHANGE
from headrace._graph.join_nodes import RegularJoin
from headrace._graph.nodes import MAIN
from headrace._runtime import registry
from headrace._runtime.joins.matching import PAIRS
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Moment
from headrace._runtime.rows import Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from tests.runtime.joins.regular.cases import join_node

ROWS = 2_400


def skewed(node: RegularJoin, side: int, change: str | None = None, rows: int = ROWS) -> Rows:
    """Every other row has the key 0, the others have keys of their own."""
    numbers = np.arange(rows)
    arrays = [pa.array(np.where(numbers % 2, 0, numbers)), pa.array(numbers)]
    arrays += [] if change is None else [pa.array([change] * rows)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=node.input_schemas[side])
    return Rows(batch, numbers)


def said(node: RegularJoin, epochs: list[list[Rows]]) -> list[list[Rows]]:
    """What comes out of one shard, as it comes."""
    store, arrays, outs = MemoryChunkStore(), MemoryArrays(), []
    for epoch in epochs:
        state = ShardState(registry.tables(node), store, arrays, range(128))
        state.open()
        operator = registry.keyed(node, state)
        operator.equip(Metrics("join"), 0)
        out = [rows for _, rows in operator.tick(Moment(0, 0, 0, 0))]
        for side, rows in enumerate(epoch):
            feeder = registry.feeder(node, side)
            assert not list(feeder.feed(rows, 0))
            for batch in feeder.flush():
                operator.merge(batch, side)
        for output, rows in operator.settle():
            assert output == MAIN
            out.append(rows)
        state.commit()
        outs.append(out)
    return outs


def kinds(rows: list[Rows]) -> dict[Any, int]:
    """How many rows of each kind there are."""
    found: dict[Any, int] = {}
    for part in rows:
        counted = part.batch.column(CHANGE).value_counts()
        for entry in counted.to_pylist():
            found[entry["values"]] = found.get(entry["values"], 0) + entry["counts"]
    return found


@pytest.mark.parametrize("how", ["inner", "full"])
def test_pairs_of_one_key_come_in_portions(how: str) -> None:
    node = join_node(how, key="whole", changing=[True, True])
    sent = [skewed(node, side, "+I") for side in (0, 1)]
    gone = [skewed(node, side, "-D") for side in (0, 1)]
    first, second = said(node, [sent, gone])
    # The key 0 has a row among those with their own, too.
    hot, alone = ROWS // 2 + 1, ROWS // 2 - 1
    assert kinds(first) == {"+I": hot * hot + alone}
    assert kinds(second) == {"-D": hot * hot + alone}
    assert max(len(rows) for rows in [*first, *second]) <= PAIRS


def test_one_row_with_many_partners_comes_in_portions() -> None:
    node = join_node("left", key="whole", changing=[True, False])
    many = skewed(node, 1, rows=3 * PAIRS)
    one = Rows(skewed(node, 0, "+I").batch.slice(0, 1), np.arange(1))
    nothing = Rows(one.batch.slice(0, 0), np.arange(0))
    _, out = said(node, [[nothing, many], [one, skewed(node, 1)]])
    assert sum(map(len, out)) == (3 * PAIRS + ROWS) // 2 + 2
    assert max(map(len, out)) <= PAIRS
