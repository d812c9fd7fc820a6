"""Kafka's page on the semantics of joins: a stream beside a table, one record an instant, all of one key; results by hand.

stream      1 null       3 A       5 B       7 null       9 C             12 null              15 D
table            2 null       4 a       6 b       8 null      10 c  11 null     13 null  14 d

A null in the table deletes; a null in the stream is no record. Here a null in the table is a "-D".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import headrace as hr
from headrace._graph.join_nodes import BroadcastJoin
from headrace._graph.nodes import MAIN
from headrace.connectors.memory import MemorySource
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import TIME, StepHarness
from tests.oracle.joins.broadcast import BroadcastOracle

STREAM = {3: "A", 5: "B", 9: "C", 15: "D"}
TABLE = {2: None, 4: "a", 6: "b", 8: None, 10: "c", 11: None, 13: None, 14: "d"}

Run = Callable[[BroadcastJoin, Sequence[StepEpoch]], list[dict[str, Any]]]


def by_oracle(node: BroadcastJoin, epochs: Sequence[StepEpoch]) -> list[dict[str, Any]]:
    oracle = BroadcastOracle(node)
    return [
        made | {TIME: time}
        for epoch in epochs
        for said in oracle.epoch(epoch)
        for time, made in said.get(MAIN, ())
    ]


def by_engine(node: BroadcastJoin, epochs: Sequence[StepEpoch]) -> list[dict[str, Any]]:
    harness = StepHarness(node, 2, stamped=True)
    return harness.run(epochs, restores={4: 3, 9: 1, 12: 2}, crashes=[3, 8])[MAIN]


@pytest.fixture(params=[by_oracle, by_engine], ids=["oracle", "engine"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param


def beside(how: Any) -> BroadcastJoin:
    """The step that users get when they build it so."""
    env = hr.Environment("story")
    table = MemorySource([], {"key": str, "right": str, "change": str})
    table.carries_changes = True
    stream = env.from_source(MemorySource([], {"key": str, "left": str}), uid="stream")
    small = env.from_source(table, uid="table").broadcast()
    stream.join(small, on="key", how=how, uid="beside")
    (node,) = [step for step in env.graph.nodes if isinstance(step, BroadcastJoin)]
    return node


def story() -> list[StepEpoch]:
    """An epoch an instant."""
    epochs = []
    for instant in range(1, 16):
        rows = []
        if instant in STREAM:
            rows = [SidedRow(instant, {"key": "k", "left": STREAM[instant]}, 0)]
        if instant in TABLE:
            value = TABLE[instant]
            fields = {"key": "k", "right": value, "change": "-D" if value is None else "+U"}
            rows = [SidedRow(instant, fields, 1, ("table", "0", instant))]
        epochs.append(StepEpoch(instant - 1, instant, rows))
    return epochs


@pytest.mark.parametrize(
    ("how", "results"),
    [
        ("inner", [(5, "B", "a"), (15, "D", "d")]),
        ("left", [(3, "A", None), (5, "B", "a"), (9, "C", None), (15, "D", "d")]),
    ],
)
def test_a_stream_beside_a_table(run: Run, how: str, results: list[Any]) -> None:
    found = run(beside(how), story())
    assert sorted((r[TIME], r["left"], r["right"]) for r in found) == results
