"""Interval joins keep the contract of keyed operators, whatever lies in their interval and whoever is preserved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headrace._graph.join_nodes import IntervalJoin
from headrace._graph.nodes import ERRORS, LATE_RIGHT
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.runtime.contract import KeyedContract, assert_same
from tests.runtime.joins.interval.interval_cases import (
    HOWS,
    INTERVALS,
    answer,
    interval_node,
    left,
    right,
)
from tests.runtime.joins.stamped import shown

#: Disorder, duplicates on both sides, rows behind the watermark and just before it, rows that come early, null keys.
EPOCHS = (
    StepEpoch(
        NO_WATERMARK, NO_WATERMARK,
        [left(12, "a"), right(10, "a"), left(3, "b"), right(16, "a"), right(16, "a"), left(12, "a")],
    ),
    StepEpoch(
        NO_WATERMARK, 9,
        [right(15, "a"), left(9, "a"), right(9, "b"), left(10, "c"), right(12, "c"), left(11, None),
         right(10, None), left(13, "c"), right(13, "a")],
    ),
    StepEpoch(
        9, 14,
        [left(15, "b"), right(14, "c"), right(18, "b"), left(20, "ä"), left(1, "b")],
        [right(10, "a", 77), left(14, "c", 78), right(9, "c"), left(12, ""), right(14, "")],
    ),
    StepEpoch(14, 15, [right(22, "b"), right(16, "ä"), left(16, "d"), left(30, "a")]),
    StepEpoch(
        15, 24, [right(25, "ä"), right(30, "a"), left(25, "d")], [right(17, "ä"), left(21, "b")]
    ),
    StepEpoch(24, END_OF_TIME, [], [right(33, "a"), left(26, "a"), right(26, "e")]),
)  # fmt: skip


class IntervalContract(KeyedContract):
    """Derive and say which interval, and who is preserved."""

    interval: str
    how: str

    def node(self) -> IntervalJoin:
        return interval_node(*INTERVALS[self.interval], self.how)

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(self.node(), epochs)

    def harness(self, shards: int = 1, **how: Any) -> StepHarness:
        return super().harness(shards, stamped=True, **how)

    def agree(self, harness: StepHarness, epochs: Sequence[StepEpoch], **how: Any) -> None:
        """Rows with their times and phases."""
        assert_same(shown(harness.run(epochs, **how)), self.expected(self.epochs()))

    def test_sample_has_late_rows_on_the_right_and_dead_letters(self) -> None:
        expected = self.expected(self.epochs())
        assert expected[LATE_RIGHT]
        assert len(expected[ERRORS]) == {"inner": 2, "full": 0}.get(self.how, 1)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("interval", ["before", "behind", "around", "a point"])
class TestEach(IntervalContract):
    @pytest.fixture(autouse=True)
    def _which(self, interval: str, how: str) -> None:
        self.interval, self.how = interval, how
