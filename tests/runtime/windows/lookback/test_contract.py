"""Look-backs keep the contract of keyed operators."""

from collections.abc import Sequence
from datetime import timedelta

from headrace import aggregates as agg
from headrace._graph.nodes import LookBackAggregate
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import LookBack
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
    StepEpoch(NO_WATERMARK, NO_WATERMARK, [(12, row("a")), (3, row("b", text="x")), (7, row("a"))]),
    StepEpoch(NO_WATERMARK, 9, [(11, row("a", 5)), (10, row("c", text="y")), (0, row("a"))]),
    StepEpoch(9, 21, [(22, row("b")), (1, row("a")), (22, row("a", None))], [(10, row("c", 4))]),
    StepEpoch(21, 24, [(25, row("b", 9)), (40, row("d", text="x")), (2, row("b"))]),
    StepEpoch(24, END_OF_TIME, [], [(25, row("a", 2))]),
)


class LookBackContract(KeyedContract):
    size_us: int

    def node(self) -> LookBackAggregate:
        return step_node(
            LookBackAggregate, LookBack(timedelta(microseconds=self.size_us)), AGGREGATES
        )

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(self.node(), epochs)


class TestShort(LookBackContract):
    size_us = 3


class TestLong(LookBackContract):
    size_us = 17
