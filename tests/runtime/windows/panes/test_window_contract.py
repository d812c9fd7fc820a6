"""Windows keep the contract of keyed operators."""

from collections.abc import Sequence

import pytest

from headrace import aggregates as agg
from headrace._graph.nodes import WindowAggregate
from headrace.testing.oracle import OracleEpoch
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.runtime.contract import KeyedContract
from tests.runtime.keyed_harness import Outputs
from tests.runtime.windows.cases import answer, row, window_node

AGGREGATES = {
    "rows": agg.count(),
    "total": agg.sum("number"),
    "least": agg.min("number"),
    "words": agg.count_distinct("text"),
    "newest": agg.last("text"),
    "all": agg.collect("number"),
}
EPOCHS = (
    OracleEpoch(
        NO_WATERMARK, NO_WATERMARK, [(12, row("a")), (3, row("b", text="x")), (7, row("a"))]
    ),
    OracleEpoch(NO_WATERMARK, 9, [(11, row("a", 5)), (8, row("c", text="y")), (0, row("a"))]),
    OracleEpoch(9, 21, [(13, row("b")), (1, row("a")), (22, row("a", None))], [(9, row("e", 4))]),
    OracleEpoch(21, 24, [(13, row("b", 9)), (40, row("d", text="x")), (2, row("b"))]),
    OracleEpoch(24, END_OF_TIME, [], [(25, row("a", 2))]),
)


class WindowContract(KeyedContract):
    window: Window

    def node(self) -> WindowAggregate:
        return window_node(self.window, 8, AGGREGATES)

    def epochs(self) -> Sequence[OracleEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[OracleEpoch]) -> Outputs:
        return answer(self.node(), epochs)


class TestTumbling(WindowContract):
    window = Window(10, 10)


class TestHopping(WindowContract):
    window = Window(9, 3)


@pytest.mark.parametrize("window", [Window(10, 10), Window(9, 3)])
def test_sample_fires_again(window: Window) -> None:
    results = answer(window_node(window, 8, AGGREGATES), EPOCHS)["main"]
    assert max(result["firing"] for result in results) >= 1
