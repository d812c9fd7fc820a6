"""Random streams: sessions are what the oracle says, however they are sharded, restored or replayed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace import aggregates as agg
from headrace._graph.nodes import SessionAggregate
from headrace._runtime.windows import sessions
from headrace._runtime.windows.sessions import absorbing, feeder, intervals, operator
from headrace.errors import EngineError
from headrace.expressions import col
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Session
from tests.examples import examples
from tests.runtime.contract import assert_same
from tests.runtime.windows import cases
from tests.runtime.windows.cases import GAPS, compare, disturbances, lateness, policies, step_node
from tests.runtime.windows.each_aggregate import EACH

SIMPLE = {"rows": agg.count(), "total": agg.sum("number"), "all": agg.collect("number")}
# Merging two sessions cannot keep the order of calls of a user's function.
AGGREGATES = {name: aggregate for name, aggregate in EACH.items() if name != "function"}
SETTINGS = examples(12)

windows = st.sampled_from(
    [*(Session(timedelta(microseconds=gap)) for gap in (1, 3, 6)), Session.dynamic("gap")]
)
#: Many rows of few keys: several sessions of a key live at once.
crowded = cases.streams(gaps=True, few_keys=True)

YEAR_1 = -62_135_596_800_000_000
YEAR_9998 = 253_370_764_800_000_000


def node_of(window: Session, **said: Any) -> SessionAggregate:
    aggregates = said.pop("aggregates", SIMPLE)
    return step_node(SessionAggregate, window, aggregates, **{"schema": GAPS, **said})


@SETTINGS
@given(crowded, windows, lateness, policies, disturbances())
def test_any_stream(
    epochs: Any, window: Session, lateness_us: int, on_late: Any, how: dict[str, Any]
) -> None:
    compare(node_of(window, lateness_us=lateness_us, on_late=on_late), epochs, **how)


@SETTINGS
@given(crowded, windows, lateness, policies, disturbances())
def test_each_aggregate(
    epochs: Any, window: Session, lateness_us: int, on_late: Any, how: dict[str, Any]
) -> None:
    node = node_of(window, aggregates=AGGREGATES, lateness_us=lateness_us, on_late=on_late)
    compare(node, epochs, **how)


@SETTINGS
@given(crowded, windows, st.sampled_from([(), ("at", "key")]), disturbances())
def test_no_key_and_a_key_of_two_columns(
    epochs: Any, window: Session, keys: tuple[str, ...], how: dict[str, Any]
) -> None:
    usable = [
        epoch._replace(
            rows=[(ts, row) for ts, row in epoch.rows if row["at"]],
            early=[(ts, row) for ts, row in epoch.early if row["at"]],
        )
        for epoch in epochs
    ]
    compare(node_of(window, keys=keys, lateness_us=4), usable, **how)


@SETTINGS
@given(crowded, disturbances())
def test_gaps_from_an_expression_or_a_function(epochs: Any, how: dict[str, Any]) -> None:
    by_function = node_of(Session.dynamic(lambda row: row.gap), lateness_us=3)
    compare(by_function, epochs, **how)
    by_expression = node_of(Session.dynamic(col("gap")), lateness_us=3)
    found = StepHarness(by_expression).run(epochs)
    assert_same(found, cases.answer(by_function, epochs))


@pytest.mark.parametrize("room", [2**63, 0], ids=["packed", "ranked"])
@SETTINGS
@given(
    epochs=crowded,
    window=windows,
    base=st.sampled_from([YEAR_1 + 20, YEAR_9998]),
    lateness_us=st.integers(1, 10**14),
)
def test_times_of_any_year(
    epochs: Any, window: Session, base: int, lateness_us: int, room: int
) -> None:
    """Some of the rows lie at an end of time, the others in 1970."""

    def moved(time: int) -> int:
        outside = time in (NO_WATERMARK, END_OF_TIME)
        return time if outside else base + time if time > 20 else time

    def rows(timed: Any) -> list[Any]:
        return [(moved(ts), row) for ts, row in timed]

    marks = sorted(moved(mark) for epoch in epochs for mark in epoch[:2])
    spread = [
        epoch._replace(
            before=marks[2 * n],
            watermark=marks[2 * n + 1],
            rows=rows(epoch.rows),
            early=rows(epoch.early),
        )
        for n, epoch in enumerate(epochs)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "_ROOM", room)
        compare(node_of(window, lateness_us=lateness_us), spread, shards=2)


@SETTINGS
@given(crowded, windows, disturbances())
def test_rows_that_withdraw_others(epochs: Any, window: Session, how: dict[str, Any]) -> None:
    def signed(timed: Any) -> list[Any]:
        return [(ts, row | {"change": ("+I", "-U")[ts % 2]}) for ts, row in timed]

    epochs = [e._replace(rows=signed(e.rows), early=signed(e.early)) for e in epochs]
    node = node_of(
        window,
        aggregates={"rows": agg.count(), "total": agg.sum("number")},
        schema=GAPS.append(pa.field("change", pa.string())),
        weighted=True,
        lateness_us=4,
    )
    compare(node, epochs, **how)


def _over_late(watermark: int, lateness_us: int) -> int:
    return _LAST_OVER(watermark, lateness_us) - 1


def _touching_is_apart(keys: Any, starts: Any, ends: Any) -> Any:
    return _MERGE(keys, starts, ends - 1)


def _fires_late(watermark: int) -> int:
    return min(watermark, END_OF_TIME - 1)


_LAST_OVER = sessions.layout.last_over
_MERGE = intervals.merge_intervals


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [
        (absorbing, "last_over", _over_late),
        (feeder, "merge_intervals", _touching_is_apart),
        (absorbing, "merge_intervals", _touching_is_apart),
        (operator, "_instant", _fires_late),
    ],
    ids=["late one microsecond late", "touching rows", "touching sessions", "fired one late"],
)
def test_a_bug_of_one_microsecond_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, bug: Any
) -> None:
    monkeypatch.setattr(where, name, bug)

    # Without shrinking: that a counterexample exists is the fact.
    @settings(
        max_examples=200,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(crowded, windows, lateness)
    def search(epochs: list[StepEpoch], window: Session, lateness_us: int) -> None:
        compare(node_of(window, lateness_us=lateness_us), epochs)

    with pytest.raises((AssertionError, EngineError)):
        search()
