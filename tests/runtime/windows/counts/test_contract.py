"""Count windows keep the contract of keyed operators."""

from collections.abc import Sequence

from headrace import aggregates as agg
from headrace._graph.nodes import CountAggregate
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Count
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
    StepEpoch(NO_WATERMARK, NO_WATERMARK, [(12, row("a")), (3, row("b", text="x"))]),
    StepEpoch(
        NO_WATERMARK,
        9,
        [(11, row("a", 5)), (8, row("c", text="y")), (0, row("a")), (7, row("a", 9))],
    ),
    StepEpoch(
        9,
        21,
        [
            (13, row("b")),
            (1, row("a")),
            (22, row("a", None)),
            *[(4, row("c", n)) for n in range(9)],
        ],
        [(9, row("e", 4)), (2, row("b", 6)), (3, row("b", text="z"))],
    ),
    StepEpoch(21, 24, [(13, row("b", 9)), (40, row("d", text="x")), (2, row("b"))]),
    StepEpoch(24, END_OF_TIME, [(1, row("b", 7))], [(25, row("a", 2))]),
)


class CountContract(KeyedContract):
    has_late_rows = False
    keeps_a_rest = True
    window: Count

    def node(self) -> CountAggregate:
        return step_node(CountAggregate, self.window, AGGREGATES)

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(self.node(), epochs)


class TestTumbling(CountContract):
    window = Count(3)


class TestSliding(CountContract):
    window = Count(6, 4)


class TestSlidingByOne(CountContract):
    window = Count(3, 1)
