"""Joins with a broadcast table keep the contract of keyed operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headrace._graph.join_nodes import BroadcastJoin
from headrace._graph.nodes import ERRORS
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.oracle.joins.broadcast import BroadcastOracle
from tests.runtime.contract import KeyedContract, assert_same
from tests.runtime.joins.broadcast.cases import broadcast_node, entry, row
from tests.runtime.joins.stamped import answer, shown

#: Rows before and behind their entry, entries that are replaced, deleted and come back, null keys on both sides.
EPOCHS = (
    StepEpoch(
        NO_WATERMARK, NO_WATERMARK,
        [row("a", 1, 1), entry("a", 1, "x", 1, "+I"), row("c", 1, 10), entry("c", 1, "w", 2, "+I")],
    ),
    StepEpoch(NO_WATERMARK, 5, [row("a", 1, 2), row("b", 2, 3), row(None, 1, 4)]),
    StepEpoch(
        5, 9,
        [row("b", 2, 5), entry("b", 2, "y", 3, "+I"), entry("a", 1, "x", 5, "-U"), row("a", 1, 20)],
        [row("b", 2, 6), entry("a", 1, "z", 7, "+U"), row("a", 1, 21)],
    ),
    StepEpoch(
        9, 12,
        [row("a", 1, 7), entry("a", 1, "z", 9, "-D"), entry("b", None, "", 11, "+I"),
         entry("c", 1, "v", 8, "-D"), entry("c", 1, "u", 10, "+I"), row("c", 1, 22)],
    ),
    StepEpoch(12, 13, [row("a", 1, 8), row("b", 2, 9), row("c", 1, 12)]),
    StepEpoch(13, END_OF_TIME, [], [row("a", 1, 13), entry("a", 1, "t", 20, "+I"), row("b", 3, 14)]),
)  # fmt: skip


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("changing", [False, True])
class TestEach(KeyedContract):
    has_late_rows = False
    keeps_a_rest = True

    @pytest.fixture(autouse=True)
    def _which(self, how: str, changing: bool) -> None:
        self.how, self.changing = how, changing

    def node(self) -> BroadcastJoin:
        return broadcast_node(self.how, changing=self.changing)

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS if self.changing else [_without_changes(epoch) for epoch in EPOCHS]

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(BroadcastOracle(self.node()), epochs)

    def harness(self, shards: int = 1, **how: Any) -> StepHarness:
        return super().harness(shards, stamped=True, **how)

    def agree(self, harness: StepHarness, epochs: Sequence[StepEpoch], **how: Any) -> None:
        """Rows with their times and phases."""
        assert_same(shown(harness.run(epochs, **how)), self.expected(self.epochs()))

    def test_sample_has_dead_letters(self) -> None:
        assert len(self.expected(self.epochs())[ERRORS]) == (2 if self.how == "inner" else 1)


def _without_changes(epoch: StepEpoch) -> StepEpoch:
    def of(rows: Sequence[Any]) -> list[Any]:
        kept = [{k: v for k, v in row.fields.items() if k != "change"} for row in rows]
        return [row._replace(fields=fields) for row, fields in zip(rows, kept, strict=True)]

    return epoch._replace(rows=of(epoch.rows), early=of(epoch.early))
