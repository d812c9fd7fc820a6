"""Window steps, random streams and right answers for the tests beside this file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headrace._graph.nodes import LATE, MAIN, WindowAggregate, WindowStep
from headrace._graph.windows import result_fields
from headrace.aggregates import Aggregate
from headrace.testing.oracle import OracleEpoch, oracle_of
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.runtime.keyed_harness import Outputs

SCHEMA = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("number", pa.int64()),
        pa.field("amount", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)


def window_node(
    window: Window,
    lateness_us: int,
    aggregates: Mapping[str, Aggregate],
    *,
    keys: Sequence[str] = ("key",),
    schema: pa.Schema = SCHEMA,
) -> WindowAggregate:
    """A window step as the builder would make it."""
    return WindowAggregate(
        id=1,
        uid="per-key",
        inputs=(),
        schema=result_fields(keys, window, "accumulating", aggregates, schema),
        keys=tuple(keys),
        window=window,
        lateness_us=lateness_us,
        aggregates=tuple(aggregates.items()),
        input_schema=schema,
    )


def answer(node: WindowStep, epochs: Sequence[OracleEpoch]) -> Outputs:
    """What the oracle says."""
    oracle = oracle_of(node)
    results, late = oracle.run(epochs)
    return {MAIN: results, LATE: late, **getattr(oracle, "sides", {})}


def row(key: str | None, number: int | None = 1, **more: Any) -> dict[str, Any]:
    """A row of `SCHEMA`, null where nothing is said."""
    return dict.fromkeys(SCHEMA.names) | {"key": key, "number": number} | more


#: Windows of a few microseconds, so that a random watermark often lies exactly on an edge.
windows = st.sampled_from(
    [Window(4, 4), Window(5, 5, 2), Window(6, 2), Window(6, 3, 1), Window(8, 4), Window(3, 1)]
)
_rows = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["a", "b", "c", "d", "ä"]),
        "number": st.none() | st.integers(-3, 3),
        "amount": st.none() | st.sampled_from([0.5, -2.25, -0.0, 0.0, 1e9, float("nan")]),
        "text": st.none() | st.sampled_from(["", "x", "yy", "é"]),
        "at": st.none()
        | st.sampled_from([datetime(2025, 1, day, tzinfo=UTC) for day in (1, 2, 3)]),
    }
)
_timed = st.lists(st.tuples(st.integers(-20, 60), _rows), max_size=12)


@st.composite
def streams(draw: st.DrawFn) -> list[OracleEpoch]:
    """Epochs whose watermarks rise in random steps, and rows anywhere around them."""
    marks = sorted(draw(st.lists(st.integers(-10, 60), min_size=1, max_size=5)))
    before = NO_WATERMARK
    epochs = []
    for mark in marks:
        epochs.append(OracleEpoch(before, mark, draw(_timed), draw(_timed)))
        before = mark
    return [*epochs, OracleEpoch(before, END_OF_TIME, (), draw(_timed))]
