"""Random steps of every kind on random streams: the engine that runs them says what the oracle says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import aggregates as agg
from headrace._graph.nodes import WindowProcess
from headrace._graph.windows import aggregate_node
from headrace.schema import as_schema
from headrace.testing.epochs import StepEpoch
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Assigner, Cumulating, Global, Hopping, Session, Tumbling
from tests.examples import examples
from tests.runtime.windows.cases import (
    GAPS,
    SCHEMA,
    accumulations,
    compare,
    counts,
    cumulating,
    disturbances,
    lateness,
    look_backs,
    policies,
    sessions,
    step_node,
    streams,
    windows,
)
from tests.runtime.windows.trigger_cases import (
    MANY_ROWS,
    SHOWN,
    Ladder,
    Shown,
    any_evictor,
    any_trigger,
    by_time,
    early_late,
)

AGGREGATES = {
    "rows": agg.count(),
    "total": agg.sum("number"),
    "newest": agg.last("text"),
    "words": agg.count_distinct("text"),
    "all": agg.collect("number"),
}
RETRACTABLE = {"rows": agg.count(), "total": agg.sum("number")}
MANY = examples(7)
SOME = examples(6)

aligned = windows | cumulating
gaps_of_rows = st.just(Session.dynamic("gap"))


def node_of(window: Assigner, **said: Any) -> Any:
    """The step that the builder would choose."""
    extra = {name: said.pop(name, None) for name in ("trigger", "evictor")}
    accumulation = said.get("accumulation", "accumulating")
    kind, fields = aggregate_node(window, extra["trigger"], accumulation, extra["evictor"])
    aggregates = said.pop("aggregates", AGGREGATES)
    return step_node(kind, window, aggregates, **said, **fields)


@MANY
@given(streams(), aligned, lateness, policies, disturbances())
def test_aligned(epochs: Any, window: Any, lateness_us: int, on_late: Any, how: Any) -> None:
    compare(node_of(window, lateness_us=lateness_us, on_late=on_late), epochs, **how)


@MANY
@given(streams(), aligned, lateness, accumulations, early_late(), disturbances())
def test_aligned_early_and_late(
    epochs: Any, window: Any, lateness_us: int, accumulation: Any, trigger: Any, how: Any
) -> None:
    node = node_of(window, lateness_us=lateness_us, accumulation=accumulation, trigger=trigger)
    compare(node, epochs, **how)


@MANY
@given(streams(), aligned, lateness, accumulations, st.none() | by_time(), policies, disturbances())
def test_aligned_by_time(
    epochs: Any,
    window: Any,
    lateness_us: int,
    accumulation: Any,
    trigger: Any,
    on_late: Any,
    how: Any,
) -> None:
    said = {"accumulation": accumulation, "trigger": trigger, "on_late": on_late}
    compare(node_of(window, lateness_us=lateness_us, **said), epochs, **how)


@MANY
@given(streams(few_keys=True), sessions, lateness, policies, disturbances())
def test_sessions(epochs: Any, window: Any, lateness_us: int, on_late: Any, how: Any) -> None:
    compare(node_of(window, lateness_us=lateness_us, on_late=on_late), epochs, **how)


@MANY
@given(streams(gaps=True, few_keys=True), gaps_of_rows, lateness, policies, disturbances())
def test_sessions_with_gaps_of_their_rows(
    epochs: Any, window: Any, lateness_us: int, on_late: Any, how: Any
) -> None:
    node = node_of(window, lateness_us=lateness_us, on_late=on_late, schema=GAPS)
    compare(node, epochs, **how)


@MANY
@given(streams(few_keys=True), sessions, lateness, accumulations, any_trigger, disturbances())
def test_sessions_with_triggers(
    epochs: Any, window: Any, lateness_us: int, accumulation: Any, trigger: Any, how: Any
) -> None:
    node = node_of(window, lateness_us=lateness_us, accumulation=accumulation, trigger=trigger)
    compare(node, epochs, **how)


@MANY
@given(streams(few_keys=True), look_backs, disturbances())
def test_look_backs(epochs: Any, window: Any, how: Any) -> None:
    compare(node_of(window, aggregates=AGGREGATES), epochs, **how)


@MANY
@given(streams(few_keys=True), counts, disturbances())
def test_counts(epochs: Any, window: Any, how: Any) -> None:
    compare(node_of(window), epochs, **how)


@SOME
@given(streams(few_keys=True), any_trigger, accumulations, disturbances())
def test_global(epochs: Any, trigger: Any, accumulation: Any, how: Any) -> None:
    compare(node_of(Global(), trigger=trigger, accumulation=accumulation), epochs, **how)


@MANY
@given(
    streams(),
    aligned | st.just(Ladder()),
    lateness,
    accumulations,
    any_trigger,
    policies,
    disturbances(),
)
def test_any_trigger(
    epochs: Any,
    window: Any,
    lateness_us: int,
    accumulation: Any,
    trigger: Any,
    on_late: Any,
    how: Any,
) -> None:
    said = {"accumulation": accumulation, "trigger": trigger, "on_late": on_late}
    compare(node_of(window, lateness_us=lateness_us, **said), epochs, **how)


@pytest.mark.parametrize("aggregates", [{}, {"rows": agg.count()}], ids=["rows", "aggregates"])
@SOME
@given(
    epochs=streams(few_keys=True),
    window=aligned | sessions,
    lateness_us=lateness,
    trigger=st.none() | any_trigger,
    how=disturbances(),
)
def test_functions(
    aggregates: Any, epochs: Any, window: Any, lateness_us: int, trigger: Any, how: Any
) -> None:
    node = step_node(
        WindowProcess,
        window,
        aggregates,
        lateness_us=lateness_us,
        trigger=trigger,
        function=Shown(),
        side_outputs=((MANY_ROWS.name, MANY_ROWS.schema),),
        schema_of_results=as_schema(SHOWN),
    )
    compare(node, epochs, **how)


@SOME
@given(streams(), aligned | sessions, lateness, any_trigger, any_evictor, disturbances())
def test_evictors(
    epochs: Any, window: Any, lateness_us: int, trigger: Any, evictor: Any, how: Any
) -> None:
    node = node_of(window, lateness_us=lateness_us, trigger=trigger, evictor=evictor)
    compare(node, epochs, **how)


@SOME
@given(streams(), st.one_of(aligned, sessions, counts, look_backs), disturbances())
def test_without_a_key(epochs: Any, window: Any, how: Any) -> None:
    compare(node_of(window, keys=()), epochs, **how)


DAY, HOUR = timedelta(days=1), timedelta(hours=1)
BERLIN = [
    Tumbling(DAY, zone="Europe/Berlin"),
    Tumbling(DAY, 3 * HOUR, zone="Europe/Berlin"),
    Hopping(3 * DAY, DAY, zone="Europe/Berlin"),
    Cumulating(DAY, HOUR, zone="Europe/Berlin"),
    Cumulating(DAY, 6 * HOUR, zone="Europe/Berlin"),
]


def spread(epochs: list[StepEpoch], start: datetime) -> list[StepEpoch]:
    """The same stream with half hours for microseconds, some of them one microsecond before."""
    first = (start - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    def far(time: int) -> int:
        outside = time in (NO_WATERMARK, END_OF_TIME)
        return time if outside else first + time * 1_800_000_000 - time % 2

    return [
        epoch._replace(
            before=far(epoch.before),
            watermark=far(epoch.watermark),
            rows=[(far(ts), fields) for ts, fields in epoch.rows],
            early=[(far(ts), fields) for ts, fields in epoch.early],
        )
        for epoch in epochs
    ]


@pytest.mark.parametrize("start", [datetime(2025, 3, 29, 18), datetime(2025, 10, 25, 18)])
@SOME
@given(epochs=streams(), window=st.sampled_from(BERLIN), hours=st.sampled_from([0, 1, 30]))
def test_days_where_clocks_change(
    start: datetime, epochs: list[StepEpoch], window: Any, hours: int
) -> None:
    node = node_of(window, lateness_us=hours * 3_600_000_000)
    compare(node, spread(epochs, start.replace(tzinfo=UTC)), shards=2)


@SOME
@given(streams(), windows, lateness, disturbances())
def test_rows_that_withdraw_others(
    epochs: list[StepEpoch], window: Any, lateness_us: int, how: Any
) -> None:
    signed = [
        epoch._replace(rows=_signed(epoch.rows), early=_signed(epoch.early)) for epoch in epochs
    ]
    schema = SCHEMA.append(pa.field("change", pa.string()))
    node = node_of(
        window, aggregates=RETRACTABLE, lateness_us=lateness_us, schema=schema, weighted=True
    )
    compare(node, signed, **how)


def _signed(rows: Any) -> list[Any]:
    changes = ["+I", "+U", "-U"]
    return [(ts, fields | {"change": changes[(ts + n) % 3]}) for n, (ts, fields) in enumerate(rows)]
