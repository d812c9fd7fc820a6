"""What the general engine must not get wrong, case by case."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given

from headrace import aggregates as agg
from headrace import triggers
from headrace._graph.nodes import LATE, MAIN, SessionAggregate, WindowAggregate, WindowProcess
from headrace._runtime import registry
from headrace._runtime.operator import Moment, Outlook
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace._runtime.windows.rows.runs import ROUNDS
from headrace.errors import UserCodeError
from headrace.evictors import Evictor
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness, timed_rows
from headrace.triggers import Trigger, TriggerResult
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Session, Window, WindowAssigner
from tests.examples import examples
from tests.runtime.contract import assert_same
from tests.runtime.windows.cases import (
    SCHEMA,
    compare,
    cumulating,
    disturbances,
    lateness,
    policies,
    row,
    sessions,
    step_node,
    streams,
    windows,
)

AGGREGATES = {"rows": agg.count(), "total": agg.sum("number"), "all": agg.collect("number")}
SOME = examples(10)
ROWS = [(5, row("a", 1)), (7, row("a", 2)), (3, row("b", 3))]
INSTANT = datetime(1970, 1, 1, tzinfo=UTC)


def us(time: int) -> timedelta:
    return timedelta(microseconds=time)


@SOME
@given(streams(), windows | cumulating | sessions, lateness, policies, disturbances())
def test_without_a_trigger_it_says_what_the_other_engines_say(
    epochs: Any, window: Any, lateness_us: int, on_late: Any, how: Any
) -> None:
    said: dict[str, Any] = {"lateness_us": lateness_us, "on_late": on_late}
    other = SessionAggregate if isinstance(window, Session) else WindowAggregate
    shards, rows = how.pop("shards"), how.pop("batch_rows")
    found, expected = (
        StepHarness(step_node(kind, window, AGGREGATES, **said), shards, rows).run(epochs, **how)
        for kind in (WindowProcess, other)
    )
    assert_same(found, expected)


def test_one_batch_may_fire_a_cell_many_times() -> None:
    node = step_node(WindowProcess, Window(10, 10), AGGREGATES, trigger=triggers.count(3))
    rows = [(5, row("a", n)) for n in range(50)]
    found = StepHarness(node).run([StepEpoch(NO_WATERMARK, 2, rows)])[MAIN]
    assert [r["rows"] for r in found] == list(range(3, 50, 3))
    assert [r["firing"] for r in found] == list(range(16))
    assert found[-1]["all"] == list(range(48))


def test_a_heavy_key_fires_more_often_than_rounds_are_made() -> None:
    keys = "aabaaac"
    rows = [(n % 20, row(keys[n % 7], n, text=str(n % 11))) for n in range(400)]
    rows = [(ts, fields) for ts, fields in rows if fields["number"] % 13]
    epochs = [
        StepEpoch(NO_WATERMARK, 2, rows[:20]),
        StepEpoch(2, 4, rows[20:]),
        StepEpoch(4, END_OF_TIME),
    ]
    more = {
        "newest": agg.last("text"),
        "words": agg.count_distinct("text"),
        "most": agg.max("number"),
    }
    for window in (Window(20, 20), Session(us(5))):
        for trigger in (triggers.count(2), triggers.after_each(*[triggers.count(1)] * 60)):
            node = step_node(WindowProcess, window, AGGREGATES | more, trigger=trigger)
            compare(node, epochs)
    assert len(rows) > 4 * ROUNDS


def outlook_behind(trigger: Trigger | None, rows: Any = ROWS) -> Outlook:
    node = step_node(WindowProcess, Window(10, 10), AGGREGATES, trigger=trigger, lateness_us=5)
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    feeder, operator = registry.feeder(node), registry.keyed(node, state)
    list(feeder.feed(timed_rows(SCHEMA, rows), 2))
    list(operator.tick(Moment(NO_WATERMARK, 2, 0, 14)))
    for batch in feeder.flush():
        operator.merge(batch)
    list(operator.settle())
    return operator.outlook()


def test_the_outlook_says_which_timers_come_next() -> None:
    assert outlook_behind(None) == Outlook(9, 2, None)
    assert outlook_behind(triggers.count(9)) == Outlook(None, 0, None)
    assert outlook_behind(triggers.never().or_finally(triggers.event_time())) == Outlook(9, 2, None)
    assert outlook_behind(triggers.continuous_processing_time(us(10))) == Outlook(None, 0, 20)
    assert outlook_behind(triggers.early(count=9), []) == Outlook(None, 0, None)


class At(WindowAssigner):
    """Whatever it is told."""

    def __init__(self, *windows: Any) -> None:
        self._windows = windows

    def assign(self, row: Any, timestamp: datetime) -> Iterator[tuple[datetime, datetime]]:
        yield from self._windows


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((INSTANT, INSTANT), "ends before it starts"),
        ((INSTANT.replace(tzinfo=None), INSTANT), "datetimes with a time zone"),
        ((1, 2), "datetimes with a time zone"),
        (INSTANT, "pairs"),
    ],
)
def test_windows_that_are_none_are_refused(given: Any, message: str) -> None:
    node = step_node(WindowProcess, At(given), AGGREGATES)
    with pytest.raises(UserCodeError, match=message) as caught:
        StepHarness(node).run([StepEpoch(NO_WATERMARK, 2, ROWS)])
    assert "per-key" in str(caught.value)


def test_a_window_given_twice_is_one() -> None:
    node = step_node(WindowProcess, At(*[(INSTANT, INSTANT + us(10))] * 2), AGGREGATES)
    found = StepHarness(node).run([StepEpoch(NO_WATERMARK, 2, ROWS), StepEpoch(2, 9)])[MAIN]
    assert sorted(r["rows"] for r in found) == [1, 2]


@pytest.mark.parametrize("on_late", ["side_output", "own_window"])
def test_a_row_without_windows_is_late(on_late: Any) -> None:
    found = StepHarness(step_node(WindowProcess, At(), AGGREGATES, on_late=on_late)).run(
        [StepEpoch(NO_WATERMARK, 2, ROWS)]
    )
    assert len(found[LATE]) == 3
    assert not found[MAIN]


class Says(Trigger):
    """Returns what it is told."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        if isinstance(self._result, BaseException):
            raise self._result
        made: TriggerResult = self._result
        return made


@pytest.mark.parametrize(
    ("result", "message"),
    [(True, "must return a TriggerResult"), (KeyError("no"), "'per-key' raised KeyError")],
)
def test_what_a_trigger_does_wrong_names_the_step(result: Any, message: str) -> None:
    node = step_node(WindowProcess, Window(10, 10), AGGREGATES, trigger=Says(result))
    with pytest.raises(UserCodeError, match=message):
        StepHarness(node).run([StepEpoch(NO_WATERMARK, 2, ROWS)])


class Odd(Evictor):
    """Keeps rows with an odd number; behind the function none stays."""

    def evict_before(self, rows: Any, window: Any) -> Any:
        return [timed for timed in rows if timed.row.number % 2]

    def evict_after(self, rows: Any, window: Any) -> Any:
        return []


def test_a_written_evictor_says_what_counts_and_what_stays() -> None:
    node = step_node(
        WindowProcess, Window(10, 10), AGGREGATES, trigger=triggers.count(2), evictor=Odd()
    )
    rows = [(5, row("a", n)) for n in (1, 2, 3, 4, 6, 8)]
    found = StepHarness(node).run([StepEpoch(NO_WATERMARK, 2, rows)])[MAIN]
    # The last two rows are even: nothing is left to be shown.
    assert [r["all"] for r in found] == [[1], [3]]


class Late(Trigger):
    """Sets a timer far behind the window's closing, and one before it."""

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        context.register_event_time_timer(window.end + us(100))
        context.register_event_time_timer(window.end + us(2))
        context.delete_event_time_timer(window.end + us(3))
        return TriggerResult.CONTINUE

    def on_event_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        assert time == window.end + us(2)
        return TriggerResult.FIRE


def test_timers_behind_the_closing_never_run() -> None:
    node = step_node(WindowProcess, Window(10, 10), AGGREGATES, trigger=Late(), lateness_us=8)
    found = StepHarness(node).run([StepEpoch(NO_WATERMARK, 2, ROWS), StepEpoch(2, END_OF_TIME)])
    assert sorted(r["rows"] for r in found[MAIN]) == [1, 2]
    assert {r["pane"] for r in found[MAIN]} == {"on_time"}
