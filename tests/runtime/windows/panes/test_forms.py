"""Random streams over every form of aligned windows: what the panes say is what the oracle says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import aggregates as agg
from headrace import triggers
from headrace._graph.nodes import WindowAggregate
from headrace._graph.windows import aggregate_node
from headrace.testing.epochs import StepEpoch
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Cumulating, Hopping, Tumbling, Window
from tests.examples import examples
from tests.runtime.windows.cases import (
    accumulations,
    compare,
    cumulating,
    disturbances,
    lateness,
    policies,
    row,
    step_node,
    streams,
    windows,
)  # fmt: skip

AGGREGATES = {
    "rows": agg.count(),
    "total": agg.sum("number"),
    "words": agg.count_distinct("text"),
    "newest": agg.last("text"),
    "best": agg.max_by("text", "number"),
    "all": agg.collect("number"),
}
MANY = examples(8)

odd = st.sampled_from([Window(7, 3), Window(6, 4, 1), Window(10, 4), Window(5, 2, 1), Window(7, 5)])
whole = st.sampled_from([Window(4, 4), Window(5, 5, 2), Window(12, 12, 3)])
aligned = windows | odd | cumulating


def us(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


@st.composite
def early(draw: st.DrawFn) -> Any:
    """An early trigger that panes can do."""
    every = us(draw(st.sampled_from([1, 3, 4, 10])))
    trigger = triggers.early(every=every, time=draw(st.sampled_from(["processing", "event"])))
    return draw(st.sampled_from([trigger, trigger.late(each=True)]))


def node_of(window: Window, accumulation: Any = "accumulating", **said: Any) -> WindowAggregate:
    """The step that the builder chooses, which must be one of panes."""
    kind, fields = aggregate_node(
        window, said.pop("trigger", None), accumulation, None, late=said.get("lateness_us", 0) > 0
    )
    assert kind is WindowAggregate
    return step_node(kind, window, AGGREGATES, accumulation=accumulation, **said, **fields)


@MANY
@given(streams(), odd | cumulating, lateness, policies, disturbances())
def test_odd_hops_and_growing_windows(
    epochs: Any, window: Window, lateness_us: int, on_late: Any, how: Any
) -> None:
    compare(node_of(window, lateness_us=lateness_us, on_late=on_late), epochs, **how)


@MANY
@given(streams(), windows, lateness, disturbances())
def test_late_rows_in_windows_of_their_own(
    epochs: Any, window: Window, lateness_us: int, how: Any
) -> None:
    compare(node_of(window, lateness_us=lateness_us, on_late="own_window"), epochs, **how)


@MANY
@given(streams(few_keys=True), aligned, lateness, policies, disturbances())
def test_results_are_withdrawn(
    epochs: Any, window: Window, lateness_us: int, on_late: Any, how: Any
) -> None:
    node = node_of(window, "retracting", lateness_us=lateness_us, on_late=on_late)
    compare(node, epochs, **how)


@MANY
@given(streams(few_keys=True), whole, st.sampled_from([3, 12, 40]), disturbances())
def test_firings_that_discard(epochs: Any, window: Window, lateness_us: int, how: Any) -> None:
    compare(node_of(window, "discarding", lateness_us=lateness_us), epochs, **how)


@examples(6)
@given(streams(few_keys=True), aligned)
def test_what_fires_once_has_nothing_to_discard(epochs: Any, window: Window) -> None:
    compare(node_of(window, "discarding"), epochs)


@MANY
@given(streams(), aligned | whole, lateness, accumulations, early(), policies, disturbances())
def test_early_firings(
    epochs: Any, window: Window, lateness_us: int, accumulation: Any, trigger: Any, on_late: Any,
    how: Any,
) -> None:  # fmt: skip
    if accumulation == "discarding" and window.panes > 1:
        accumulation = "retracting"
    said = {"lateness_us": lateness_us, "trigger": trigger, "on_late": on_late}
    compare(node_of(window, accumulation, **said), epochs, **how)


@MANY
@given(streams(few_keys=True), aligned, lateness, accumulations, early(), disturbances())
def test_without_keys(
    epochs: Any, window: Window, lateness_us: int, accumulation: Any, trigger: Any, how: Any
) -> None:
    if accumulation == "discarding" and window.panes > 1:
        accumulation, trigger = "accumulating", None
    said = {"lateness_us": lateness_us, "trigger": trigger, "keys": ()}
    compare(node_of(window, accumulation, **said), epochs, **how)


HOUR_US = 3_600_000_000
#: Instants at which clocks are set.
CHANGES = {
    "Europe/Berlin": 1761440400,
    "America/Sao_Paulo": 1541300400,
    "Australia/Lord_Howe": 1301756400,
    "Pacific/Apia": 1325239200,
}


@st.composite
def zoned(draw: st.DrawFn) -> tuple[Window, list[StepEpoch]]:
    """Days around a change of the clock; what was microseconds in a stream is hours."""
    zone = draw(st.sampled_from(sorted(CHANGES)))
    day, hour = timedelta(days=1), timedelta(hours=1)
    window = draw(
        st.sampled_from(
            [
                Tumbling(day, zone=zone),
                Tumbling(2 * day, offset=5 * hour, zone=zone),
                Hopping(2 * day, day, zone=zone),
                Hopping(36 * hour, day, zone=zone),
                Cumulating(day, hour, zone=zone),
                Cumulating(day, 6 * hour, offset=-hour, zone=zone),
            ]
        )
    )
    return window, [_moved(epoch, CHANGES[zone]) for epoch in draw(streams())]


def _moved(epoch: StepEpoch, change: int) -> StepEpoch:
    def at(hours: int) -> int:
        return (
            hours
            if hours in (NO_WATERMARK, END_OF_TIME)
            else change * 10**6 + (hours - 20) * HOUR_US
        )

    before, mark = (m if m in (NO_WATERMARK, END_OF_TIME) else at(m) - 1 for m in epoch[:2])
    rows, first = ([(at(ts), row) for ts, row in rows] for rows in epoch[2:4])
    return StepEpoch(before, mark, rows, first, epoch.clock_before, epoch.clock)


@MANY
@given(zoned(), st.sampled_from([0, 1, 30]), accumulations, policies, disturbances())
def test_days_of_a_zone(
    case: Any, late_hours: int, accumulation: Any, on_late: Any, how: Any
) -> None:
    window, epochs = case
    lateness_us = late_hours * HOUR_US
    if accumulation == "discarding" and window.panes > 1:
        accumulation = "accumulating"
    node = node_of(window, accumulation, lateness_us=lateness_us, on_late=on_late)
    compare(node, epochs, **how)


@pytest.mark.parametrize(
    "window", [Window(4, 4, time="processing"), Window(6, 2, time="processing")]
)
@MANY
@given(data=st.data())
def test_processing_time(window: Window, data: st.DataObject) -> None:
    # As a segment feeds it: rows carry the clock of their epoch, which is also the watermark.
    epochs, before = [], NO_WATERMARK
    for epoch in data.draw(streams()):
        rows = [(epoch.clock, row) for _, row in epoch.rows]
        mark = epoch.clock - 1 if epoch.watermark != END_OF_TIME else END_OF_TIME
        rows = rows if mark != END_OF_TIME else []
        epochs.append(StepEpoch(before, mark, rows, (), epoch.clock_before, epoch.clock))
        before = mark
    how = data.draw(disturbances())
    compare(node_of(window, data.draw(accumulations.filter(lambda a: a != "discarding")),
                    trigger=data.draw(st.none() | early())), epochs, **how)  # fmt: skip


def test_a_row_of_the_year_9999_fires_at_the_end() -> None:
    last = 253402300799999999
    epochs = [StepEpoch(NO_WATERMARK, 5, [(last, row("a"))]), StepEpoch(5, END_OF_TIME)]
    for window in (Tumbling(timedelta(days=1)), Cumulating(timedelta(days=1), timedelta(hours=1))):
        compare(node_of(window), epochs)
