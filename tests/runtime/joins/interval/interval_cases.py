"""Interval joins, random streams and right answers: what the tests of this folder share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import headrace as hr
from headrace._graph.join_nodes import IntervalJoin
from headrace.connectors.memory import MemorySource
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import Outputs
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.examples import examples
from tests.oracle.joins.interval import IntervalOracle
from tests.runtime.joins import stamped

RANDOM = examples(36)

US = timedelta(microseconds=1)
LEFT = pa.schema({"key": pa.string(), "n": pa.int64(), "ts": pa.timestamp("us", "UTC")})
RIGHT = pa.schema({"key": pa.string(), "m": pa.int64(), "tag": pa.string()})

#: Before, behind, around, a single point, and those that begin or end at the row itself.
INTERVALS = {
    "before": (-7, -2),
    "behind": (2, 7),
    "around": (-3, 4),
    "a point": (3, 3),
    "the same instant": (0, 0),
    "until it": (-5, 0),
    "from it on": (0, 5),
}
HOWS = ("inner", "left", "right", "full")
KEYS = st.sampled_from(["a", "b", "", None])


def interval_node(
    lower_us: int = -3,
    upper_us: int = 4,
    how: Any = "inner",
    *,
    schemas: Sequence[pa.Schema] = (LEFT, RIGHT),
    on: Any = "key",
    **options: Any,
) -> IntervalJoin:
    """The step that users get when they build it so."""
    env = hr.Environment("joined")
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps(lambda _: timedelta(0))
    sides = [
        env.from_source(MemorySource([], schema), watermarks=strategy, uid=uid)
        for uid, schema in zip(("left", "right"), schemas, strict=True)
    ]
    pair = sides[0].interval_join(sides[1], on=on)
    pair.between(lower_us * US, upper_us * US, how=how, uid="near", **options)
    (node,) = [node for node in env.graph.nodes if isinstance(node, IntervalJoin)]
    return node


def left(at: int, key: Any, n: int | None = None) -> SidedRow:
    """A row of the left; it tells its time, if nothing else is said."""
    return SidedRow(at, {"key": key, "n": at if n is None else n, "ts": None}, 0)


def right(at: int, key: Any, m: int | None = None, tag: str | None = None) -> SidedRow:
    """A row of the right."""
    return SidedRow(at, {"key": key, "m": at if m is None else m, "tag": tag}, 1)


def answer(node: IntervalJoin, epochs: Sequence[StepEpoch]) -> Outputs:
    """What the oracle says."""
    return stamped.answer(IntervalOracle(node), epochs, on_time=True)


def compare(node: IntervalJoin, epochs: Sequence[StepEpoch], **how: Any) -> None:
    """The engine says what the oracle says; `how` is one of `disturbances`."""
    stamped.compare(IntervalOracle(node), epochs, on_time=True, **how)


@st.composite
def streams(
    draw: st.DrawFn, keys: st.SearchStrategy[Any] = KEYS, *, most: int = 12
) -> list[StepEpoch]:
    """Epochs whose watermarks rise in random steps, and rows of both sides anywhere around them."""
    row = st.builds(
        lambda at, key, side, n: (
            left(at, key, n) if side == 0 else right(at, key, n, "x" * (n % 3))
        ),
        st.integers(-10, 30),
        keys,
        st.integers(0, 1),
        st.integers(0, 3),
    )
    rows = st.lists(row, max_size=most)
    marks = sorted(draw(st.lists(st.integers(-12, 30), min_size=1, max_size=5)))
    before, epochs = NO_WATERMARK, []
    for mark in marks:
        epochs.append(StepEpoch(before, mark, draw(rows), draw(rows)))
        before = mark
    if draw(st.booleans()):
        epochs.append(StepEpoch(before, END_OF_TIME, (), draw(rows)))
    return epochs
