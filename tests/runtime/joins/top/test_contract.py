"""The best pair keeps the contract of keyed operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace._graph.join_nodes import TopPairJoin
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.runtime.contract import KeyedContract, assert_same
from tests.runtime.joins.top.cases import answer, row, shown, top_node


def auction(key: float | None, low: int, high: int) -> Any:
    return row(1, 0, {"id": key, "low": low, "high": high})


def bid(key: float | None, price: int, time: int) -> Any:
    return row(1, 1, {"of": key, "price": price, "time": time})


EPOCHS = (
    StepEpoch(NO_WATERMARK, NO_WATERMARK, [bid(1, 5, 3), bid(1, 9, 99), bid(2, 1, 1)]),
    StepEpoch(NO_WATERMARK, 5, [auction(1, 0, 10), bid(1, 5, 2), bid(None, 1, 1)]),
    StepEpoch(5, 9, [bid(1, 5, 4), bid(3, 2, 2), auction(3, 0, 5)], [bid(1, 7, 7)]),
    StepEpoch(9, 12, [auction(1, 50, 100), bid(1, 7, 6), auction(2, 5, 9)]),
    StepEpoch(12, END_OF_TIME, [bid(2, 3, 6), bid(3, 2, 1), bid(-0.0, 1, 1), auction(0.0, 1, 1)]),
)


class TestTopPair(KeyedContract):
    has_late_rows = False
    keeps_a_rest = True
    one = 0

    def node(self) -> TopPairJoin:
        return top_node(self.one)

    def epochs(self) -> Sequence[StepEpoch]:
        if self.one == 0:
            return EPOCHS
        return [
            epoch._replace(
                rows=[r._replace(side=1 - r.side) for r in epoch.rows],
                early=[r._replace(side=1 - r.side) for r in epoch.early],
            )
            for epoch in EPOCHS
        ]

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(epochs, self.one)

    def agree(self, harness: StepHarness, epochs: Sequence[StepEpoch], **how: Any) -> None:
        assert_same(shown(harness.run(epochs, **how)), self.expected(self.epochs()))


class TestTopPairOfTheRight(TestTopPair):
    one = 1
