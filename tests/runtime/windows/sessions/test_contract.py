"""Sessions keep the contract of keyed operators."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from headrace import aggregates as agg
from headrace._graph.nodes import SessionAggregate
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Session
from tests.runtime.contract import KeyedContract
from tests.runtime.windows.cases import GAPS, answer, step_node
from tests.runtime.windows.cases import row as plain_row

AGGREGATES = {
    "rows": agg.count(),
    "total": agg.sum("number"),
    "least": agg.min("number"),
    "words": agg.count_distinct("text"),
    "newest": agg.last("text"),
    "all": agg.collect("number"),
}


def row(key: str, number: int | None = 1, gap: int = 5, **more: Any) -> dict[str, Any]:
    return plain_row(key, number, gap=timedelta(microseconds=gap), **more)


# Key a: [12, 17) and [3, 8) are bridged by the row at 8 of the second epoch; b has three sessions at once.
EPOCHS = (
    StepEpoch(
        NO_WATERMARK,
        NO_WATERMARK,
        [(12, row("a")), (3, row("b", text="x")), (3, row("a", gap=4)), (30, row("b", gap=2))],
    ),
    StepEpoch(
        NO_WATERMARK, 7, [(8, row("a", 5)), (8, row("c", text="y")), (15, row("b", 2, gap=9))]
    ),
    StepEpoch(
        7,
        21,
        [(13, row("b")), (1, row("a")), (22, row("a", None)), (2, row("e"))],
        [(9, row("e", 4)), (0, row("e")), (6, row("c", 7))],
    ),
    StepEpoch(21, 24, [(13, row("b", 9)), (40, row("d", text="x")), (2, row("b"))]),
    StepEpoch(24, END_OF_TIME, [], [(25, row("a", 2)), (1, row("a"))]),
)


class SessionContract(KeyedContract):
    window: Session

    def node(self) -> SessionAggregate:
        return step_node(SessionAggregate, self.window, AGGREGATES, schema=GAPS, lateness_us=6)

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(self.node(), epochs)


class TestFixedGap(SessionContract):
    window = Session(timedelta(microseconds=5))


class TestGapOfEachRow(SessionContract):
    window = Session.dynamic("gap")


def test_sample_bridges_and_fires_again() -> None:
    node = step_node(SessionAggregate, TestFixedGap.window, AGGREGATES, schema=GAPS, lateness_us=6)
    results = answer(node, EPOCHS)["main"]
    assert max(result["firing"] for result in results) >= 1
    assert any(
        result["window_start"].microsecond == 3 and result["window_end"].microsecond == 17
        for result in results
        if result["key"] == "a"
    )
