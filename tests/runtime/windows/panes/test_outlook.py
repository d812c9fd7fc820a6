"""What a step of aligned windows waits for, as it says behind every epoch."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headrace import aggregates as agg
from headrace import triggers
from headrace._graph.nodes import WindowAggregate
from headrace._runtime import registry
from headrace._runtime.operator import Outlook
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import moment, timed_rows
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Tumbling, Window
from tests.runtime.windows.cases import SCHEMA, row, step_node

COUNT = {"rows": agg.count()}
FIRST = StepEpoch(
    NO_WATERMARK, 0, [(1, row("a")), (3, row("b")), (5, row("a")), (29, row("c"))], (), 0, 13
)


def outlook(window: Window, *epochs: StepEpoch, **said: Any) -> Outlook:
    """What the step says behind the last of these epochs."""
    node = step_node(WindowAggregate, window, COUNT, **said)
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    for epoch in epochs:
        feeder, operator = registry.feeder(node), registry.keyed(node, state)
        list(feeder.feed(timed_rows(SCHEMA, epoch.rows), epoch.watermark))
        list(operator.tick(moment(epoch)))
        for batch in feeder.flush():
            operator.merge(batch)
        list(operator.settle())
        state.commit()
    return operator.outlook()


def test_the_next_window_with_rows_and_how_many_keys_it_has() -> None:
    assert outlook(Window(10, 10), FIRST) == Outlook(9, 2, None)
    assert outlook(Window(10, 10), FIRST, StepEpoch(0, 9)) == Outlook(29, 1, None)


def test_a_window_of_several_panes_counts_the_rows_of_all() -> None:
    # The windows that hold 1 end at 2, 4, 6; the first with an end behind W = 0 is [-4, 2).
    assert outlook(Window(6, 2), FIRST) == Outlook(1, 1, None)
    assert outlook(Window(6, 2), FIRST, StepEpoch(0, 4)) == Outlook(5, 3, None)


def test_a_growing_window_counts_what_was_put_together() -> None:
    assert outlook(Window(8, 2, 0, None, True), FIRST, StepEpoch(0, 6)) == Outlook(7, 2, None)


@pytest.mark.parametrize("window", [Window(10, 10), Window(8, 4), Window(8, 2, 0, None, True)])
def test_nothing_is_waited_for_without_rows_or_time(window: Window) -> None:
    assert outlook(window, StepEpoch(NO_WATERMARK, 0)) == Outlook()
    assert outlook(window, FIRST, StepEpoch(0, END_OF_TIME)) == Outlook()


def test_a_window_that_fired_and_may_fire_again_is_not_waited_for() -> None:
    assert outlook(Window(40, 40), FIRST, StepEpoch(0, 39), lateness_us=99) == Outlook()


def test_an_instant_of_a_zone() -> None:
    # Midnight in Kolkata, UTC+5:30.
    window = Tumbling(timedelta(days=1), zone="Asia/Kolkata")
    assert outlook(window, FIRST).fires_at == 18.5 * 3_600_000_000 - 1


def test_in_processing_time_the_clock_is_asked_for_an_epoch() -> None:
    # The window [0, 10) fires when the clock shows 10: W = clock - 1 = 9.
    assert outlook(Window(10, 10, time="processing"), FIRST) == Outlook(9, 2, 10)


def early(time: Any) -> Any:
    return triggers.early(every=timedelta(microseconds=5), time=time)


def test_early_firings_ask_for_an_epoch_while_something_changed() -> None:
    assert outlook(Window(10, 10), FIRST, trigger=early("processing")) == Outlook(9, 2, 15)
    shown = StepEpoch(0, 0, (), (), 13, 15)
    assert outlook(Window(10, 10), FIRST, shown, trigger=early("processing")) == Outlook(9, 2, None)


def test_discarding_early_firings_ask_for_an_epoch_too() -> None:
    said = {"trigger": early("processing"), "accumulation": "discarding"}
    assert outlook(Window(10, 10), FIRST, **said) == Outlook(9, 2, 15)
    assert outlook(Window(10, 10), FIRST, StepEpoch(0, 0, (), (), 13, 15), **said) == Outlook()


def test_early_firings_in_event_time_come_before_the_end() -> None:
    assert outlook(Window(10, 10), FIRST, trigger=early("event")) == Outlook(5, 3, None)
    # Behind W = 5 the end of [0, 10) is next, and [20, 30) has shown all.
    shown = StepEpoch(0, 5)
    assert outlook(Window(10, 10), FIRST, shown, trigger=early("event")) == Outlook(9, 2, None)
