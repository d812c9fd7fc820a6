"""Versioned and as-of joins, random streams for both sides, and right answers: what their tests share.

Times are a few microseconds, so that rows of both sides often share a timestamp and the watermark lies on it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import headrace as hr
from headrace._graph.join_nodes import AsOfJoin
from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT, MAIN
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import PHASE, TIME, Outputs, StepHarness, step_of
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.oracle.joins.asof import AsOfOracle
from tests.runtime.contract import assert_same
from tests.runtime.streams import timed_stream

LEFT = pa.schema([("key", pa.string()), ("part", pa.float64()), ("n", pa.int64())])
RIGHT = pa.schema(
    [("key", pa.string()), ("share", pa.float64()), ("n", pa.int64()), ("label", pa.string())]
)
CHANGES = RIGHT.append(pa.field("change", pa.string()))

#: Which keys: of equal names, of two columns, floats of different names.
ON = {
    "one": (("key",), ("key",)),
    "two": (("key", "part"), ("key", "share")),
    "floats": (("part",), ("share",)),
}


def step(
    how: Any = "inner",
    on: str | tuple[Sequence[str], Sequence[str]] = "one",
    *,
    changes: bool = False,
    schemas: tuple[pa.Schema, pa.Schema] | None = None,
    **fields: Any,
) -> AsOfJoin:
    """The step that users get when they build it so: direction, tolerance_us and exact as fields."""
    env = hr.Environment("versions")
    left_schema, right_schema = schemas or (LEFT, CHANGES if changes else RIGHT)
    rows = timed_stream(env, left_schema, "rows")
    versions = timed_stream(env, right_schema, "versions", changes=changes)
    tolerance_us = fields.pop("tolerance_us", None)
    left_on, right_on = ON[on] if isinstance(on, str) else on
    joined = rows.join_asof(
        versions, left_on=left_on, right_on=right_on, how=how, uid="join",
        tolerance=None if tolerance_us is None else timedelta(microseconds=tolerance_us),
        allow_exact_matches=fields.pop("exact", True), **fields,
    )  # fmt: skip
    node = step_of(joined)
    assert isinstance(node, AsOfJoin)
    return node


def left(at: int, key: str | None = "a", n: int = 0, part: float | None = 0.0) -> SidedRow:
    """A left row."""
    return SidedRow(at, {"key": key, "part": part, "n": n}, 0)


def right(
    at: int, key: str | None = "a", n: int = 0, change: str | None = None, **more: Any
) -> SidedRow:
    """A right row, with a `change` if that is said."""
    fields = {"key": key, "share": 0.0, "n": n, "label": f"r{n}"} | more
    return SidedRow(at, fields if change is None else fields | {"change": change}, 1)


def answer(node: AsOfJoin, epochs: Sequence[StepEpoch]) -> Outputs:
    """What the oracle says, with the time and the phase of results; of dead letters their `n`."""
    outputs: Outputs = {MAIN: [], LATE: [], LATE_RIGHT: [], ERRORS: []}
    for said in AsOfOracle(node).run(epochs):
        for phase, rows in (("before", said.ticked), ("after", said.settled)):
            outputs[MAIN] += [row | {TIME: at, PHASE: phase} for at, row in rows]
        outputs[LATE] += said.late_left
        outputs[LATE_RIGHT] += said.late_right
        outputs[ERRORS] += [{"n": row["n"]} for row in said.errors]
    return outputs


def shown(outputs: Outputs) -> Outputs:
    """Outputs of a stamped harness in the form of `answer`."""
    found = {output: [dict(row) for row in rows] for output, rows in outputs.items()}
    for output in (LATE, LATE_RIGHT):
        for row in found.get(output, []):
            del row[TIME], row[PHASE]
    letters = found.get(ERRORS, [])
    return found | {ERRORS: [{"n": json.loads(letter["payload"])["n"]} for letter in letters]}


def compare(node: AsOfJoin, epochs: Sequence[StepEpoch], **how: Any) -> None:
    """The engine says what the oracle says; `how` is one of `disturbances`."""
    shards, batch_rows = how.pop("shards", 1), how.pop("batch_rows", 1_000_000)
    harness = StepHarness(node, shards, batch_rows, stamped=True)
    assert_same(shown(harness.run(epochs, **how)), answer(node, epochs))


_PARTS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")])
_KEYS = st.sampled_from(["a", "a", "a", "b", "", "ä", None])


@st.composite
def streams(draw: st.DrawFn, *, changes: bool = False, by: int = 1) -> list[StepEpoch]:
    """Epochs whose watermarks rise in random steps, and rows of both sides anywhere around them.

    Half of all rows have the key "a". `by` stretches time.
    """
    numbers = iter(range(1, 10_000))

    def rows() -> list[SidedRow]:
        made = []
        for at, side, key, part in draw(
            st.lists(
                st.tuples(
                    st.integers(-10, 30), st.sampled_from([0, 0, 1]), _KEYS, _PARTS | st.none()
                ),
                max_size=14,
            )
        ):
            n = next(numbers)
            if side == 0:
                made.append(left(at * by, key, n, part))
            else:
                change = draw(st.sampled_from(["+I", "+U", "-U", "-D"])) if changes else None
                made.append(right(at * by, key, n, change, share=part))
        return made

    marks = sorted(draw(st.lists(st.integers(-10, 30), min_size=1, max_size=6)))
    before, epochs = NO_WATERMARK, []
    for mark in marks:
        epochs.append(StepEpoch(before, mark * by, rows(), rows()))
        before = mark * by
    return [*epochs, StepEpoch(before, END_OF_TIME, (), rows())]
