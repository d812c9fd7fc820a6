"""Window steps, random streams, random disturbances and right answers: what the tests of all engines share.

    @given(streams(), sessions, lateness, disturbances())
    def test_any_stream(epochs, window, lateness_us, how):
        compare(step_node(SessionAggregate, window, AGGREGATES, lateness_us=lateness_us), epochs, **how)

Times are a few microseconds, so that a random watermark often lies exactly on an edge and rows often share a
timestamp. Rows come in any order, before and behind the watermark, early and late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pyarrow as pa
from hypothesis import strategies as st

from headrace._graph.nodes import LATE, MAIN, WindowAggregate, WindowStep
from headrace._graph.windows import result_fields
from headrace.aggregates import Aggregate
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Assigner, Count, LookBack, Session, Window
from tests.oracle import oracle_of
from tests.runtime.contract import assert_same

SCHEMA = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("number", pa.int64()),
        pa.field("amount", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)
#: The same with a gap for each row.
GAPS = SCHEMA.append(pa.field("gap", pa.duration("us")))

Step = TypeVar("Step", bound=WindowStep)


def step_node(
    kind: type[Step],
    window: Assigner,
    aggregates: Mapping[str, Aggregate],
    *,
    keys: Sequence[str] = ("key",),
    schema: pa.Schema = SCHEMA,
    **fields: Any,
) -> Step:
    """A window step as the builder would make it: lateness_us, on_late, accumulation, trigger, ... as fields.

    `schema_of_results` is for steps whose function says what its results are.
    """
    accumulation = fields.get("accumulation", "accumulating")
    results = fields.pop("schema_of_results", None)
    made: dict[str, Any] = {
        "schema": results or result_fields(keys, window, accumulation, aggregates, schema),
        "keys": tuple(keys),
        "window": window,
        "aggregates": tuple(aggregates.items()),
        "input_schema": schema,
    }
    return kind(id=1, uid="per-key", inputs=(), **(made | fields))


def window_node(
    window: Window,
    lateness_us: int,
    aggregates: Mapping[str, Aggregate],
    *,
    keys: Sequence[str] = ("key",),
    schema: pa.Schema = SCHEMA,
) -> WindowAggregate:
    """A step of aligned windows."""
    return step_node(
        WindowAggregate, window, aggregates, keys=keys, schema=schema, lateness_us=lateness_us
    )


def answer(node: WindowStep, epochs: Sequence[StepEpoch]) -> Outputs:
    """What the oracle says."""
    oracle = oracle_of(node)
    results, late = oracle.run(epochs)
    return {MAIN: results, LATE: late, **getattr(oracle, "sides", {})}


def compare(node: WindowStep, epochs: Sequence[StepEpoch], **how: Any) -> None:
    """The engine says what the oracle says; `how` is one of `disturbances`."""
    shards = how.pop("shards", 1)
    rows = how.pop("batch_rows", 1_000_000)
    assert_same(StepHarness(node, shards, rows).run(epochs, **how), answer(node, epochs))


def row(key: str | None, number: int | None = 1, **more: Any) -> dict[str, Any]:
    """A row of `SCHEMA`, null where nothing is said."""
    return dict.fromkeys(SCHEMA.names) | {"key": key, "number": number} | more


#: Aligned windows without a zone.
windows = st.sampled_from(
    [Window(4, 4), Window(5, 5, 2), Window(6, 2), Window(6, 3, 1), Window(8, 4), Window(3, 1)]
)
cumulating = st.sampled_from(
    [
        Window(size, step, shift, None, True)
        for size, step, shift in [(6, 2, 0), (8, 4, 3), (5, 1, 2), (4, 4, 0)]
    ]
)
sessions = st.sampled_from([Session(timedelta(microseconds=gap)) for gap in (1, 2, 4, 7)])
look_backs = st.sampled_from([LookBack(timedelta(microseconds=size)) for size in (1, 3, 8)])
counts = st.sampled_from([Count(1), Count(2), Count(3), Count(3, 1), Count(4, 2), Count(5, 3)])
lateness = st.sampled_from([0, 1, 3, 12])
accumulations = st.sampled_from(["accumulating", "discarding", "retracting"])
policies = st.sampled_from(["side_output", "own_window"])

_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "key": st.sampled_from(["a", "b", "c", "d", "ä"]),
    "number": st.none() | st.integers(-3, 3),
    "amount": st.none() | st.sampled_from([0.5, -2.25, -0.0, 0.0, 1e9, float("nan")]),
    "text": st.none() | st.sampled_from(["", "x", "yy", "é"]),
    "at": st.none() | st.sampled_from([datetime(2025, 1, day, tzinfo=UTC) for day in (1, 2, 3)]),
}
_GAP = st.sampled_from([timedelta(microseconds=gap) for gap in (1, 2, 5, 11)])


def _timed(*, gaps: bool, few_keys: bool) -> st.SearchStrategy[list[Any]]:
    fields = dict(_FIELDS)
    if gaps:
        fields["gap"] = _GAP
    if few_keys:
        fields["key"] = st.sampled_from(["a", "b"])
    return st.lists(st.tuples(st.integers(-20, 60), st.fixed_dictionaries(fields)), max_size=12)


@st.composite
def streams(
    draw: st.DrawFn, *, gaps: bool = False, few_keys: bool = False, ends: bool = True
) -> list[StepEpoch]:
    """Epochs whose watermarks and clocks rise in random steps, and rows anywhere around them.

    `gaps`: rows of `GAPS`. `few_keys`: more rows for each key. Without `ends` time just stops somewhere.
    """
    rows = _timed(gaps=gaps, few_keys=few_keys)
    marks = sorted(draw(st.lists(st.integers(-10, 60), min_size=1, max_size=5)))
    before, clock = NO_WATERMARK, draw(st.integers(0, 20))
    epochs = []
    for mark in marks:
        later = clock + draw(st.integers(0, 15))
        epochs.append(StepEpoch(before, mark, draw(rows), draw(rows), clock, later))
        before, clock = mark, later
    last = StepEpoch(before, END_OF_TIME, (), draw(rows), clock, clock + 1)
    return [*epochs, last] if ends else epochs


@st.composite
def disturbances(draw: st.DrawFn) -> dict[str, Any]:
    """How a stream is run: shards, batches, restores at other numbers of shards, epochs done twice."""
    shards, numbers = st.integers(1, 3), st.integers(0, 5)
    return {
        "shards": draw(shards),
        "batch_rows": draw(st.sampled_from([1, 2, 5, 1_000_000])),
        "restores": draw(st.dictionaries(numbers, shards, max_size=2)),
        "crashes": draw(st.lists(numbers, max_size=2)),
    }
