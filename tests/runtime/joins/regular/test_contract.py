"""Regular joins of every kind, and one row of each key, keep the contract of keyed operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from headrace._graph.changes import CHANGE
from headrace._graph.join_nodes import Keep, RegularJoin
from headrace._graph.nodes import ERRORS, LATE, MAIN
from headrace.expressions import col
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.oracle.joins.regular import RegularOracle
from tests.runtime.contract import KeyedContract
from tests.runtime.joins.regular.cases import check, join_node

#: (input, key, n, change): rows before and behind their partners, duplicates, null keys, withdrawals of what is there and of
#: what is not, rows that come and go in one phase.
Told = tuple[int, str | None, int | None, str]
EARLY: list[list[Told]] = [
    [],
    [(1, "b", 7, "+I")],
    [(0, "a", 2, "-U"), (0, "a", 5, "+U")],
    [(1, "a", 1, "-D"), (1, "c", 4, "+I"), (1, "c", 4, "-D")],
    [],
    [(0, "e", 2, "+I"), (1, "e", 2, "+I")],
]
ROWS: list[list[Told]] = [
    [(0, "a", 1, "+I"), (0, "a", 2, "+I"), (0, "b", 3, "+I"), (0, None, 4, "+I"), (0, "", 0, "+I")],
    [(1, "a", 1, "+I"), (1, "a", 1, "+I"), (1, "ä", 2, "+I"), (1, None, 3, "+I"), (1, "a", 9, "+I")],
    [(0, "ä", 3, "+I"), (0, "zz", 4, "-D"), (1, "a", 1, "-D"), (0, "b", None, "+I")],
    [(1, "a", 9, "-U"), (0, "a", 1, "-D"), (1, "", 6, "+U"), (1, "b", 5, "+I")],
    [(1, "ä", 2, "-D"), (0, "d", 8, "+I"), (0, "b", 3, "-D"), (1, "b", 7, "-U"), (1, "b", 5, "+U")],
    [(0, "a", 5, "-D"), (1, "d", 8, "+I")],
]  # fmt: skip
#: The clock of each epoch; rows that live for 5 run out in the fourth and the last.
CLOCKS = [3, 4, 6, 8, 9, 14]


def epochs_for(node: RegularJoin, sides: Sequence[int]) -> list[StepEpoch]:
    """The sample for a step whose inputs are these of it; inputs without changes get what is new."""

    def rows(told: Sequence[Told], clock: int) -> list[SidedRow]:
        found = []
        for place, (source, key, n, change) in enumerate(told):
            for side, mine in enumerate(sides):
                if source == mine and (node.changing[side] or change[0] == "+"):
                    fields = {"key": key, f"n{side}": n}
                    fields |= {CHANGE: change} if node.changing[side] else {}
                    found.append(SidedRow(100 * clock - 7 * place, fields, side))
        return found

    before, clock, made = NO_WATERMARK, 0, []
    for early, told, later in zip(EARLY, ROWS, CLOCKS, strict=True):
        mark = END_OF_TIME if later == CLOCKS[-1] else 100 * later
        made.append(StepEpoch(before, mark, rows(told, later), rows(early, later), clock, later))
        before, clock = mark, later
    return made


class RegularContract(KeyedContract):
    """Derive and say which join."""

    has_late_rows = False
    keeps_a_rest = True
    said: ClassVar[dict[str, Any]] = {}
    #: Which of the two inputs of the sample each input is.
    sides: tuple[int, ...] = (0, 1)

    def node(self) -> RegularJoin:
        return join_node(values=[["n"] for _ in self.sides], **self.said)

    def where(self, pair: Any) -> bool:
        """What the condition of the step says."""
        return True

    def epochs(self) -> Sequence[StepEpoch]:
        return epochs_for(self.node(), self.sides)

    def harness(self, shards: int = 1, **how: Any) -> StepHarness:
        return super().harness(shards, stamped=True, **how)

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        oracle = RegularOracle(self.node(), self.where)
        bags = [bag for epoch in epochs for bag in oracle.epoch(epoch)]
        shown = [dict(row) for bag in bags for row in bag]
        return {MAIN: shown, LATE: [], ERRORS: [dict(row) for row in oracle.errors]}

    def agree(self, harness: StepHarness, epochs: Sequence[StepEpoch], **how: Any) -> None:
        """It shows what is right behind every phase."""
        check(harness, epochs, self.where, **how)


class TestInner(RegularContract):
    pass


class TestLeft(RegularContract):
    said: ClassVar[Any] = {"how": "left"}


class TestFull(RegularContract):
    said: ClassVar[Any] = {"how": "full"}


class TestSemi(RegularContract):
    said: ClassVar[Any] = {"how": "semi", "keeps": [None, Keep("first")]}


class TestAnti(RegularContract):
    said: ClassVar[Any] = {"how": "anti", "keeps": [None, Keep("first")]}


class TestChanges(RegularContract):
    said: ClassVar[Any] = {"changing": [True, True]}


class TestFullOfChanges(RegularContract):
    said: ClassVar[Any] = {"how": "full", "changing": [True, True]}


class TestFullForATime(RegularContract):
    said: ClassVar[Any] = {"how": "full", "changing": [True, True], "ttls": [5, 2]}


class TestLeftWhosePartnersRunOut(RegularContract):
    said: ClassVar[Any] = {"how": "left", "changing": [False, True], "ttls": [None, 2]}


class TestSemiForATime(RegularContract):
    said: ClassVar[Any] = {"how": "semi", "changing": [True, True], "ttls": [5, 2]}


class TestAntiForATime(RegularContract):
    said: ClassVar[Any] = {"how": "anti", "changing": [True, False], "ttls": [None, 2]}


class TestLastOnTheRight(RegularContract):
    said: ClassVar[Any] = {"how": "left", "keeps": [None, Keep("last")], "changing": [True, True]}


class TestFirstOnTheRight(RegularContract):
    said: ClassVar[Any] = {"how": "left", "keeps": [None, Keep("first")]}


class TestTopOnTheLeft(RegularContract):
    said: ClassVar[Any] = {"keeps": [Keep("top", ("n0",), (True,)), None], "ttls": [5, None]}


class TestCondition(RegularContract):
    said: ClassVar[Any] = {"condition": col("n0") < col("n1"), "changing": [True, True]}

    def where(self, pair: Any) -> bool:
        return None not in (pair["n0"], pair["n1"]) and pair["n0"] < pair["n1"]


class TestSelf(RegularContract):
    said: ClassVar[Any] = {"how": "full", "changing": [True, True]}
    sides = (0, 0)


class TestThreeInputs(RegularContract):
    said: ClassVar[Any] = {"how": "left", "changing": [True, False, True]}
    sides = (0, 1, 1)


class TestFourInputs(RegularContract):
    said: ClassVar[Any] = {"keeps": [None, Keep("last"), None, Keep("first")]}
    sides = (0, 1, 1, 0)


class TestLast(RegularContract):
    said: ClassVar[Any] = {"keeps": [Keep("last")], "changing": [True], "ttls": [5]}
    sides = (0,)


class TestTop(RegularContract):
    said: ClassVar[Any] = {"keeps": [Keep("top", ("n0",), (True,))]}
    sides = (0,)


@pytest.mark.parametrize("contract", RegularContract.__subclasses__())
def test_every_sample_withdraws_something_if_it_can(contract: type[RegularContract]) -> None:
    sample = contract()
    said = sample.harness().run(sample.epochs())[MAIN]
    kinds = {row.get(CHANGE, "+I")[0] for row in said}
    assert kinds == ({"+", "-"} if sample.node().emits_changes else {"+"})
