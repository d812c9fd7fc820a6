"""Aligned windows of every form keep the contract of keyed operators."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from headrace import aggregates as agg
from headrace import triggers
from headrace._graph.nodes import MAIN, WindowAggregate
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Cumulating, Tumbling, Window
from tests.runtime.contract import KeyedContract
from tests.runtime.windows.cases import answer, row, step_node

AGGREGATES = {
    "rows": agg.count(),
    "total": agg.sum("number"),
    "least": agg.min("number"),
    "words": agg.count_distinct("text"),
    "newest": agg.last("text"),
    "all": agg.collect("number"),
}
EPOCHS = (
    StepEpoch(
        NO_WATERMARK, NO_WATERMARK, [(12, row("a")), (3, row("b", text="x")), (7, row("a"))],
        (), 0, 3,
    ),
    StepEpoch(
        NO_WATERMARK, 9, [(11, row("a", 5)), (8, row("c", text="y")), (0, row("a"))], (), 3, 5
    ),
    StepEpoch(
        9, 21, [(13, row("b")), (1, row("a")), (22, row("a", None))], [(9, row("e", 4))], 5, 9
    ),
    StepEpoch(21, 24, [(13, row("b", 9)), (40, row("d", text="x")), (2, row("b"))], (), 9, 10),
    StepEpoch(24, END_OF_TIME, [], [(25, row("a", 2))], 10, 12),
)  # fmt: skip


class WindowContract(KeyedContract):
    window: Window
    said: ClassVar[dict[str, Any]] = {}

    def node(self) -> WindowAggregate:
        return step_node(
            WindowAggregate, self.window, AGGREGATES, **{"lateness_us": 8, **self.said}
        )

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(self.node(), epochs)

    def test_sample_says_all_that_this_form_can(self) -> None:
        panes = {result["pane"] for result in self.expected(self.epochs())[MAIN]}
        early = {"early"} if "trigger" in self.said else set()
        assert panes >= {"on_time", "late"} | early


class TestTumbling(WindowContract):
    window = Window(10, 10)


class TestHopping(WindowContract):
    window = Window(9, 3)


class TestOddHops(WindowContract):
    window = Window(10, 4)


class TestCumulating(WindowContract):
    window = Window(10, 2, 0, None, True)


class TestEarly(WindowContract):
    window = Window(8, 4)
    said: ClassVar[dict[str, Any]] = {"trigger": triggers.early(every=timedelta(microseconds=2))}


class TestEarlyInEventTime(WindowContract):
    window = Window(12, 3, 0, None, True)
    said: ClassVar[dict[str, Any]] = {
        "trigger": triggers.early(every=timedelta(microseconds=3), time="event")
    }


class TestRetracting(WindowContract):
    window = Window(10, 4)
    said: ClassVar[dict[str, Any]] = {
        "trigger": triggers.early(every=timedelta(microseconds=2)),
        "accumulation": "retracting",
    }


class TestDiscarding(WindowContract):
    window = Window(10, 10)
    said: ClassVar[dict[str, Any]] = {
        "trigger": triggers.early(every=timedelta(microseconds=2)),
        "accumulation": "discarding",
    }


class TestWithoutKeys(WindowContract):
    window = Window(10, 5)
    said: ClassVar[dict[str, Any]] = {"keys": ()}


class TestOwnWindows(WindowContract):
    window = Window(9, 3)
    said: ClassVar[dict[str, Any]] = {"on_late": "own_window"}

    has_late_rows = False

    def test_sample_has_rows_that_are_too_late(self) -> None:
        assert "own" in {result["pane"] for result in self.expected(self.epochs())[MAIN]}


HOUR_US = 3_600_000_000
#: The clocks of Berlin are set back.
BACK_US = 1_761_440_400_000_000


class ZoneContract(WindowContract):
    """The sample with hours for microseconds; the clocks are set back at 9."""

    hours: int

    def node(self) -> WindowAggregate:
        lateness_us = 8 * self.hours * HOUR_US
        return step_node(WindowAggregate, self.window, AGGREGATES, lateness_us=lateness_us)

    def epochs(self) -> Sequence[StepEpoch]:
        return [self._moved(epoch) for epoch in EPOCHS]

    def _moved(self, epoch: StepEpoch) -> StepEpoch:
        def at(time: int) -> int:
            never = time in (NO_WATERMARK, END_OF_TIME)
            return time if never else BACK_US + (time - 9) * self.hours * HOUR_US

        rows, early = ([(at(ts), fields) for ts, fields in part] for part in epoch[2:4])
        before, watermark = at(epoch.before), at(epoch.watermark)
        return epoch._replace(before=before, watermark=watermark, rows=rows, early=early)


class TestDays(ZoneContract):
    window = Tumbling(timedelta(days=1), zone="Europe/Berlin")
    hours = 3


class TestGrowingDays(ZoneContract):
    window = Cumulating(timedelta(days=1), timedelta(hours=2), zone="Europe/Berlin")
    hours = 2


@pytest.mark.parametrize("window", [Window(10, 10), Window(9, 3)])
def test_sample_fires_again(window: Window) -> None:
    node = step_node(WindowAggregate, window, AGGREGATES, lateness_us=8)
    assert max(result["firing"] for result in answer(node, EPOCHS)[MAIN]) >= 1
