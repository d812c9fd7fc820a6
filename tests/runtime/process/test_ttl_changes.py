"""How long state lives may change between two runs: what was kept under the old time lives by the new one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import headrace as hr
from headrace._graph.nodes import MAIN
from headrace._runtime.process.reading import places_of, state_table
from headrace.testing.oracle import OracleEpoch, SidedRow
from tests.runtime.keyed_harness import KeyedHarness
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
    harness = KeyedHarness(step(10))
    harness.run([OracleEpoch(0, 1, [row(5, 7)])])
    harness.node = step(ttl)
    harness.restore()
    # It was touched at 5, so by the old time it would be gone at 15.
    found = harness.run([OracleEpoch(1, 8), OracleEpoch(8, 16, [row(17, 0)])])[MAIN]
    assert found == [{"last": 7 if lives else None, "names": int(lives)}]


@pytest.mark.parametrize("ttl", [20, 3])
def test_nothing_is_kept_for_ever(ttl: int) -> None:
    harness = KeyedHarness(step(10))
    harness.run([OracleEpoch(0, 1, [row(5, 7)])])
    harness.node = step(ttl)
    harness.restore()
    harness.run([OracleEpoch(1, 8), OracleEpoch(8, 16), OracleEpoch(16, 30)])
    for place in places_of(harness.node).values():
        assert state_table(place, harness.stores).num_rows == 0
