"""Versioned and as-of joins keep the contract of keyed operators."""

from collections.abc import Sequence
from typing import Any

from headrace._graph.join_nodes import AsOfJoin
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.runtime.contract import KeyedContract, assert_same
from tests.runtime.joins.asof.cases import answer, left, right, shown, step

EPOCHS = (
    StepEpoch(
        NO_WATERMARK, NO_WATERMARK,
        [left(3, "a", 1), right(2, "a", 2), left(1, "b", 3), right(9, "b", 4), left(12, "a", 5)],
    ),
    StepEpoch(
        NO_WATERMARK, 5,
        [right(6, "a", 6), right(4, "a", 7), left(6, "a", 8), left(5, "b", 9), right(14, "c", 10)],
    ),
    StepEpoch(
        5, 9,
        [left(13, "c", 11), right(6, "a", 12), right(11, "a", 13), left(10, "b", 14)],
        [left(7, "a", 15), right(7, "b", 16), right(11, "a", 17), left(20, "c", 18)],
    ),
    StepEpoch(9, 15, [left(16, "b", 19), right(30, "d", 20), left(2, "a", 21), right(18, "b", 22)]),
    StepEpoch(15, END_OF_TIME, [], [left(29, "d", 23), right(28, "d", 24), right(17, "b", 25)]),
)  # fmt: skip


class AsOfContract(KeyedContract):
    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(self.node(), epochs)

    def harness(self, shards: int = 1, **how: Any) -> StepHarness:
        return StepHarness(self.node(), shards, stamped=True, **how)

    def agree(self, harness: StepHarness, epochs: Sequence[StepEpoch], **how: Any) -> None:
        assert_same(shown(harness.run(epochs, **how)), self.expected(self.epochs()))


class TestVersionedInner(AsOfContract):
    def node(self) -> AsOfJoin:
        return step("inner")


class TestVersionedLeft(AsOfContract):
    def node(self) -> AsOfJoin:
        return step("left")


class TestBackwardWithTolerance(AsOfContract):
    def node(self) -> AsOfJoin:
        return step("left", tolerance_us=3)


class TestForward(AsOfContract):
    def node(self) -> AsOfJoin:
        return step("left", direction="forward", tolerance_us=4)


class TestNearest(AsOfContract):
    def node(self) -> AsOfJoin:
        return step("inner", direction="nearest", tolerance_us=3, exact=False)


CHANGES = (
    StepEpoch(
        NO_WATERMARK, NO_WATERMARK,
        [right(2, "a", 1, "+I"), right(3, "b", 2, "+I"), left(4, "a", 3), left(2, "b", 4)],
    ),
    StepEpoch(
        NO_WATERMARK, 3,
        [right(5, "a", 5, "-U"), right(5, "a", 6, "+U"), right(6, "b", 7, "-D"), left(5, "a", 8)],
    ),
    StepEpoch(
        3, 7,
        [left(8, "b", 9), right(9, "b", 10, "-D"), right(9, "b", 11, "+I"), left(9, "b", 12)],
        [right(7, "a", 13, "-D"), left(7, "a", 14), left(6, "a", 15), right(3, "b", 16, "-D")],
    ),
    StepEpoch(7, 12, [left(11, "b", 17), left(13, "b", 18), right(14, "b", 19, "-D")]),
    StepEpoch(12, END_OF_TIME, [], [left(14, "b", 20), left(13, "b", 21)]),
)  # fmt: skip


class ChangesContract(AsOfContract):
    def epochs(self) -> Sequence[StepEpoch]:
        return CHANGES


class TestVersionsThatEnd(ChangesContract):
    def node(self) -> AsOfJoin:
        return step("inner", changes=True)


class TestVersionsThatEndOfALeftJoin(ChangesContract):
    def node(self) -> AsOfJoin:
        return step("left", changes=True)


class TestVersionsThatEndWithTolerance(ChangesContract):
    def node(self) -> AsOfJoin:
        return step("left", changes=True, tolerance_us=3)


class TestVersionsThatEndForward(ChangesContract):
    def node(self) -> AsOfJoin:
        return step("left", changes=True, direction="forward", tolerance_us=3)


class TestVersionsThatEndNearest(ChangesContract):
    def node(self) -> AsOfJoin:
        return step("left", changes=True, direction="nearest", tolerance_us=3)
