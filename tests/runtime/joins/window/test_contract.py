"""Window joins keep the contract of keyed operators: each kind, with lateness and without, over each kind of window."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import pytest

from headrace._graph.join_nodes import WindowJoin
from headrace._graph.nodes import LATE_RIGHT, MAIN
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.runtime.contract import KeyedContract, assert_same
from tests.runtime.joins.window.cases import answer, join_node, left, right, shown

#: Windows of about ten microseconds. Key 1 has partners, 2 finds one late, 3 and 4 never do; NaN and zero are keys.
EPOCHS = (
    StepEpoch(NO_WATERMARK, NO_WATERMARK, [left(1, 1, 10), left(2, 2, 20), right(3, 1, 11), right(9, 3, 31)]),
    StepEpoch(NO_WATERMARK, 3, [left(12, 1, 12), right(4, 1, 13), left(5, nan, 50), left(13, 4, 40)], [right(2, nan, 51)]),
    StepEpoch(3, 11, [right(6, 2, 21), left(8, 1, 14), right(14, -0.0, 61)], [left(7, 0.0, 60), right(7, 0.0, 62)]),
    StepEpoch(11, 16, [left(6, 2, 22), right(12, 4, 41), left(3, None, 70), left(1, 3, 30)], [right(8, 2, 23), right(2, 3, 32)]),
    StepEpoch(16, 24, [left(0, 1, 90), right(1, 1, 91), right(21, 2, 24), left(25, 2, 25)], [left(13, 1, 15)]),
    StepEpoch(24, END_OF_TIME, [], [right(25, 2, 26), left(26, 5, 56), right(4, 1, 92), left(4, 1, 93)]),
)  # fmt: skip


class JoinContract(KeyedContract):
    how = "inner"
    window = Window(10, 10)
    lateness_us = 0

    def node(self) -> WindowJoin:
        return join_node(self.window, self.how, self.lateness_us)

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(self.node(), epochs)

    def agree(self, harness: StepHarness, epochs: Sequence[StepEpoch], **how: Any) -> None:
        assert_same(shown(harness.run(epochs, **how)), self.expected(self.epochs()))

    def test_sample_says_all_that_this_join_can(self) -> None:
        expected = self.expected(self.epochs())
        assert expected[LATE_RIGHT]
        if self.node().emits_changes:
            assert {result["change"] for result in expected[MAIN]} == {"+I", "-D"}


class TestInner(JoinContract):
    pass


class TestInnerLate(JoinContract):
    lateness_us = 8


class TestLeft(JoinContract):
    how = "left"


class TestLeftLate(JoinContract):
    how = "left"
    lateness_us = 8


class TestRight(JoinContract):
    how = "right"


class TestRightLate(JoinContract):
    how = "right"
    lateness_us = 8


class TestFull(JoinContract):
    how = "full"


class TestFullLate(JoinContract):
    how = "full"
    lateness_us = 8


class TestSemi(JoinContract):
    how = "semi"


class TestSemiLate(JoinContract):
    how = "semi"
    lateness_us = 8


class TestAnti(JoinContract):
    how = "anti"


class TestAntiLate(JoinContract):
    how = "anti"
    lateness_us = 8


class TestHopping(JoinContract):
    how = "left"
    window = Window(9, 3)


class TestHoppingLate(JoinContract):
    how = "full"
    window = Window(10, 4)
    lateness_us = 5


class TestCumulating(JoinContract):
    window = Window(10, 2, 0, None, True)


class TestCumulatingLate(JoinContract):
    how = "anti"
    window = Window(10, 5, 0, None, True)
    lateness_us = 6


@pytest.mark.parametrize("how", ["left", "right", "full", "anti"])
def test_nothing_is_withdrawn_without_lateness(how: str) -> None:
    assert "change" not in join_node(Window(10, 10), how).schema.names
