"""Windows with triggers, evictors and functions keep the contract of keyed operators."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

from headrace import aggregates as agg
from headrace import evictors, triggers
from headrace._graph.nodes import WindowProcess
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Assigner, Global, Session, Window
from tests.runtime.contract import KeyedContract
from tests.runtime.windows.cases import answer, row, step_node
from tests.runtime.windows.rows.written import Tells, process_node
from tests.runtime.windows.trigger_cases import EveryOther, Ladder

AGGREGATES = {
    "rows": agg.count(),
    "total": agg.sum("number"),
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
    StepEpoch(24, END_OF_TIME, [], [(25, row("a", 2)), (3, row("a", 8))], 10, 12),
)  # fmt: skip

GAP = timedelta(microseconds=4)
OFTEN = timedelta(microseconds=3)


class RowsContract(KeyedContract):
    window: Assigner = Window(10, 5)
    said: ClassVar[dict[str, Any]] = {}

    def node(self) -> WindowProcess:
        return step_node(WindowProcess, self.window, AGGREGATES, **{"lateness_us": 3, **self.said})

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(self.node(), epochs)


class TestCountRetracting(RowsContract):
    said: ClassVar[dict[str, Any]] = {"trigger": triggers.count(2), "accumulation": "retracting"}


class TestContinuousDiscarding(RowsContract):
    said: ClassVar[dict[str, Any]] = {
        "trigger": triggers.continuous_processing_time(OFTEN),
        "accumulation": "discarding",
    }


class TestComposed(RowsContract):
    window = Ladder()
    said: ClassVar[dict[str, Any]] = {
        "trigger": triggers.repeatedly(
            triggers.after_each(triggers.count(1), triggers.any_of(EveryOther(), triggers.event_time()))
        )
    }  # fmt: skip


class TestSession(RowsContract):
    window = Session(GAP)
    said: ClassVar[dict[str, Any]] = {
        "trigger": triggers.early(count=2).late(count=1),
        "accumulation": "retracting",
    }


class TestEvictor(RowsContract):
    said: ClassVar[dict[str, Any]] = {"evictor": evictors.time(GAP)}


class TestSessionWithEvictor(RowsContract):
    window = Session(GAP)
    said: ClassVar[dict[str, Any]] = {"trigger": EveryOther(), "evictor": evictors.count(2)}


class TestFunction(RowsContract):
    def node(self) -> WindowProcess:
        return process_node(Tells(), self.window, lateness_us=3)


class TestGlobal(RowsContract):
    window = Global()
    said: ClassVar[dict[str, Any]] = {"lateness_us": 0, "trigger": EveryOther()}

    def epochs(self) -> Sequence[StepEpoch]:
        # Only what comes behind the end of all time is late for a global window.
        return [*EPOCHS[:-1], EPOCHS[-1]._replace(rows=[(50, row("a", 3))])]


class TestWithoutAKey(RowsContract):
    def node(self) -> WindowProcess:
        return step_node(
            WindowProcess, Window(10, 10), AGGREGATES, keys=(), lateness_us=1, trigger=triggers.count(3)
        )  # fmt: skip
