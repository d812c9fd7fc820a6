"""What may change between two runs: how long state lives, the order of lines, and rows or columns in a function."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from headrace._graph.nodes import MAIN
from headrace._runtime.process.reads.tables import places_of, state_table
from headrace.connectors.memory import MemorySource
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import StepHarness
from tests.runtime.process.cases import process_node

US = timedelta(microseconds=1)


def step(ttl_us: int) -> Any:
    class Kept(hr.KeyedProcessFunction):
        last: hr.state.Value[int] = hr.state.TTL(ttl_us * US)
        names: hr.state.Map[str, int] = hr.state.TTL(ttl_us * US)

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield {"last": self.last.value(), "names": len(self.names)}
            if value.n:
                self.last.update(value.n)
                self.names["x"] = value.n

    inputs = [{"key": str, "n": int}]
    schema = {"last": int, "names": int}
    return process_node(Kept(), schema=schema, inputs=inputs, keys=[("key",)])


def row(at: int, n: int) -> SidedRow:
    return SidedRow(at, {"key": "a", "n": n}, 0, ("source", "0", at))


@pytest.mark.parametrize(("ttl", "lives"), [(20, True), (3, False), (10, False)])
def test_old_state_lives_by_the_new_time(ttl: int, lives: bool) -> None:
    harness = StepHarness(step(10))
    harness.run([StepEpoch(0, 1, [row(5, 7)])])
    harness.node = step(ttl)
    harness.restore()
    # It was touched at 5, so by the old time it would be gone at 15.
    found = harness.run([StepEpoch(1, 8), StepEpoch(8, 16, [row(17, 0)])])[MAIN]
    assert found == [{"last": 7 if lives else None, "names": int(lives)}]


@pytest.mark.parametrize("ttl", [20, 3])
def test_nothing_is_kept_for_ever(ttl: int) -> None:
    harness = StepHarness(step(10))
    harness.run([StepEpoch(0, 1, [row(5, 7)])])
    harness.node = step(ttl)
    harness.restore()
    harness.run([StepEpoch(1, 8), StepEpoch(8, 16), StepEpoch(16, 30)])
    for place in places_of(harness.node).values():
        assert state_table(place, harness.stores).num_rows == 0


class ByRow(hr.KeyedProcessFunction):
    seen: hr.state.Value[int] = hr.state.FOREVER
    name: hr.state.Value[str] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.seen.update((self.seen.value() or 0) + value.n)
        self.name.update(f"{ctx.key}!")
        yield {"seen": self.seen.value(), "name": self.name.value()}


class ByColumn(hr.KeyedBatchFunction):
    name: hr.state.Value[str] = hr.state.FOREVER
    seen: hr.state.Value[int] = hr.state.FOREVER

    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> Any:
        seen = self.seen.get(ctx.keys, default=0)
        np.add.at(seen, ctx.slots, batch.column("n").to_numpy())
        self.seen.put(ctx.keys, seen)
        names = self.name.get(ctx.keys).take(pa.array(ctx.slots))
        return pa.RecordBatch.from_arrays(
            [pa.array(seen[ctx.slots]), names], names=["seen", "name"]
        )


def test_a_function_of_rows_may_become_one_of_columns_and_back() -> None:
    env = hr.Environment("carried")
    rows = env.from_source(MemorySource([], {"key": str, "n": int}), uid="rows").key_by("key")
    schema = {"seen": int, "name": str}
    by_row = rows.process(ByRow(), schema=schema, uid="a")._graph.nodes[-1]
    by_column = rows.process(ByColumn(), schema=schema, uid="b")._graph.nodes[-1]
    harness = StepHarness(by_row, 2)
    said = []
    for number, node in enumerate([by_row, by_column, by_row]):
        harness.node = node
        harness.restore()
        said += harness.run([StepEpoch(number, number + 1, [row(5, 1 + number)])])[MAIN]
    assert said == [{"seen": total, "name": "a!"} for total in (1, 3, 6)]
