"""Window joins, random streams for them, and what they must say."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import headrace as hr
from headrace._graph.join_nodes import WindowJoin
from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT, MAIN
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import PHASE, TIME, Outputs, StepHarness, step_of
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.oracle.joins.window import WindowJoinOracle
from tests.runtime.contract import assert_same
from tests.runtime.streams import timed_stream

LEFT = pa.schema([("k", pa.float64()), ("t", pa.string()), ("a", pa.int64())])
RIGHT = pa.schema([("k", pa.float64()), ("t", pa.string()), ("a", pa.int64()), ("b", pa.bool_())])
HOWS = ("inner", "left", "right", "full", "semi", "anti")
NUMBER = (("k",), ("k",))


def join_node(
    window: Window,
    how: str = "inner",
    lateness_us: int = 0,
    keys: Any = NUMBER,
    schemas: tuple[pa.Schema, pa.Schema] = (LEFT, RIGHT),
) -> WindowJoin:
    """The step that users get when they build it so."""
    env = hr.Environment("windows")
    rows, others = (
        timed_stream(env, schema, uid)
        for uid, schema in zip(("left", "right"), schemas, strict=True)
    )
    chosen: Any = how
    joined = rows.window_join(
        others, left_on=keys[0], right_on=keys[1], window=window, how=chosen, uid="join",
        allowed_lateness=timedelta(microseconds=lateness_us),
    )  # fmt: skip
    node = step_of(joined)
    assert isinstance(node, WindowJoin)
    return node


def answer(node: WindowJoin, epochs: Sequence[StepEpoch]) -> Outputs:
    """What the oracle says."""
    answered = answers(node, epochs)
    return {output: [row for each in answered for row in each[output]] for output in answered[0]}


def answers(
    node: WindowJoin, epochs: Sequence[StepEpoch], *, stamped: bool = False
) -> list[Outputs]:
    """The same of each epoch; `stamped`: results say whether they came with the tick or behind it."""
    names = [schema.names for schema in node.input_schemas]
    oracle = WindowJoinOracle(
        node.window, node.keys, names, how=node.how, lateness_us=node.lateness_us
    )
    outputs = []
    for epoch in epochs:
        answered = oracle.epoch(epoch)
        results = [(row, "before") for row in answered.ticked] + [
            (row, "after") for row in answered.settled
        ]
        dead, oracle.errors = oracle.errors, []
        outputs.append(
            {
                MAIN: [row | {PHASE: phase} if stamped else row for row, phase in results],
                LATE: answered.late[0],
                LATE_RIGHT: answered.late[1],
                ERRORS: [_plain(row) for row in dead],
            }
        )
    return outputs


def shown(outputs: Outputs) -> Outputs:
    """Outputs in the form of `answer`: of dead letters, the rows."""
    letters = [_plain(json.loads(letter["payload"])) for letter in outputs.get(ERRORS, [])]
    return outputs | {ERRORS: letters}


def compare(
    node: WindowJoin,
    epochs: Sequence[StepEpoch],
    *,
    shards: int = 1,
    batch_rows: int = 1_000_000,
    restores: Mapping[int, int] | None = None,
    crashes: Sequence[int] = (),
) -> None:
    """In each epoch the engine says what the oracle says, with the tick and behind it."""
    harness = StepHarness(node, shards, batch_rows, stamped=True)
    for number, expected in enumerate(answers(node, epochs, stamped=True)):
        again = {0: restores[number]} if restores and number in restores else None
        crashed = [0] if number in crashes else []
        found = harness.run([epochs[number]], restores=again, crashes=crashed)
        kept = {
            output: [_without(row, TIME if output == MAIN else "@") for row in rows]
            for output, rows in shown(found).items()
        }
        assert_same(kept, expected)


def left(at: int, k: float | None, a: int = 0, t: str | None = "") -> SidedRow:
    """A row of the left."""
    return SidedRow(at, {"k": k, "t": t, "a": a})


def right(at: int, k: float | None, a: int = 0, t: str | None = "", *, b: bool = True) -> SidedRow:
    """A row of the right."""
    return SidedRow(at, {"k": k, "t": t, "a": a, "b": b}, 1)


windows = st.sampled_from(
    [
        Window(4, 4), Window(5, 5, 2), Window(6, 2), Window(6, 3, 1), Window(10, 4),
        Window(6, 2, 0, None, True), Window(8, 4, 3, None, True),
    ]
)  # fmt: skip
lateness = st.sampled_from([0, 0, 1, 3, 12])
all_keys = st.sampled_from(
    [NUMBER, (("t",), ("t",)), (("k", "t"), ("k", "t")), (("t",), ("k",))][:3]
)

_NUMBERS = st.sampled_from([None, 0.0, -0.0, math.nan, 1.5, 2.0])
_TEXTS = st.sampled_from([None, "", "x", "ä"])


@st.composite
def _rows(draw: st.DrawFn) -> list[SidedRow]:
    rows = st.tuples(
        st.integers(-12, 40), st.booleans(), _NUMBERS, _TEXTS, st.integers(0, 3), st.booleans()
    )
    made = draw(st.lists(rows, max_size=12))
    return [
        right(at, k, a, t, b=b) if of_right else left(at, k, a, t)
        for at, of_right, k, t, a, b in made
    ]


@st.composite
def streams(draw: st.DrawFn) -> list[StepEpoch]:
    """Epochs whose watermarks rise in random steps, and rows anywhere around them."""
    before, epochs = NO_WATERMARK, []
    for mark in sorted(draw(st.lists(st.integers(-5, 40), min_size=1, max_size=5))):
        epochs.append(StepEpoch(before, mark, draw(_rows()), draw(_rows())))
        before = mark
    return [*epochs, StepEpoch(before, END_OF_TIME, (), draw(_rows()))]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row as its payload says it: JSON has no NaN."""
    return {n: None if isinstance(v, float) and math.isnan(v) else v for n, v in row.items()}


def _without(row: dict[str, Any], stamp: str) -> dict[str, Any]:
    """The row without what the harness added."""
    return {name: value for name, value in row.items() if not name.startswith(stamp)}
