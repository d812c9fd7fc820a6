"""Functions on columns: what the same function row by row says, whatever happens to state and shards."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._graph.nodes import KeyedProcess
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.oracle import ProcessOracle
from tests.runtime.contract import KeyedContract, assert_same
from tests.runtime.process.batch_cases import (
    Chains,
    ChainsOfColumns,
    Mortals,
    MortalsOfColumns,
    Totals,
    TotalsByPlace,
    node,
)
from tests.runtime.process.cases import RANDOM, answer, expected_state, final_state, shown
from tests.runtime.windows.cases import disturbances

PAIRS = [(Totals, TotalsByPlace), (Chains, ChainsOfColumns), (Mortals, MortalsOfColumns)]
UNITS = [1, 1_000_000, 3_600_000_000]


def rows(
    *drawn: tuple[int, str, int], unit: int = 1, ids: Any = None
) -> list[tuple[int, dict[str, Any]]]:
    numbers = ids or itertools.count(drawn[0][0] if drawn else 0)
    return [(at * unit, {"user": user, "n": n, "id": next(numbers)}) for at, user, n in drawn]


@st.composite
def streams(draw: st.DrawFn) -> tuple[int, list[StepEpoch]]:
    """Rows around watermarks that time passes one after the other."""
    unit = draw(st.sampled_from(UNITS))
    row = st.tuples(st.integers(-3, 20), st.sampled_from("aabbcd"), st.integers(-4, 6))
    marks = draw(st.lists(st.integers(-5, 25), min_size=1, max_size=5))
    ids = itertools.count()
    before, clock, epochs = NO_WATERMARK, draw(st.integers(0, 20)), []
    for mark in [*(mark * unit for mark in sorted(marks)), END_OF_TIME]:
        later = clock + draw(st.integers(0, 4))
        early, mine = (draw(st.lists(row, max_size=most)) for most in (4, 8))
        both = (rows(*part, unit=unit, ids=ids) for part in (mine, early))
        epochs.append(StepEpoch(before, mark, *both, clock, later))
        before, clock = mark, later
    return unit, epochs if draw(st.booleans()) else epochs[:-1]


@pytest.mark.parametrize(("by_row", "by_column"), PAIRS)
@RANDOM
@given(stream=streams(), how=disturbances())
def test_says_and_keeps_what_the_function_on_rows_does(
    by_row: Any, by_column: Any, stream: Any, how: Any
) -> None:
    unit, epochs = stream
    how = dict(how)
    if by_row is Mortals:
        epochs = [e._replace(early=_singles(e.early), rows=_singles(e.rows)) for e in epochs]
    oracle = ProcessOracle(node(by_row(unit)))
    right = answer(oracle, epochs)
    harness = StepHarness(
        node(by_column(unit)), how.pop("shards"), how.pop("batch_rows"), stamped=True
    )
    assert_same(shown(harness.run(epochs, **how)), right)
    assert final_state(harness) == expected_state(oracle)


def _singles(timed: Sequence[Any]) -> list[Any]:
    """One row a key."""
    return list({row[1]["user"]: row for row in timed}.values())


EPOCHS = [
    StepEpoch(NO_WATERMARK, 2, rows((1, "a", 3), (5, "b", 6), (1, "a", 4), (2, "d", 1)), [], 0, 0),
    StepEpoch(2, 6, rows((7, "a", 9), (1, "b", 3)), rows((4, "c", 0), (3, "a", 1)), 0, 5),
    StepEpoch(6, 6, [], rows((9, "d", 3)), 5, 9),
    StepEpoch(6, 30, rows((31, "a", 3), (12, "b", 6)), [], 9, 10),
    StepEpoch(30, END_OF_TIME, rows((40, "c", 3), (41, "c", 1)), rows((33, "a", 4)), 10, 2_000_000),
]


class _Contract(KeyedContract):
    has_late_rows = False

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        said: Outputs = {}
        for output, timed in ProcessOracle(self.by_row()).run(epochs).items():
            said[output] = [dict(fields) for _, fields in timed]
        return {"late": []} | said

    def by_row(self) -> KeyedProcess:
        raise NotImplementedError


class TestTotals(_Contract):
    def node(self) -> KeyedProcess:
        return node(TotalsByPlace())

    def by_row(self) -> KeyedProcess:
        return node(Totals())


class TestChains(_Contract):
    def node(self) -> KeyedProcess:
        return node(ChainsOfColumns())

    def by_row(self) -> KeyedProcess:
        return node(Chains())


class TestMortals(_Contract):
    # What lives by the clock outlives event time.
    keeps_a_rest = True

    def epochs(self) -> Sequence[StepEpoch]:
        return [e._replace(early=_singles(e.early), rows=_singles(e.rows)) for e in EPOCHS]

    def node(self) -> KeyedProcess:
        return node(MortalsOfColumns())

    def by_row(self) -> KeyedProcess:
        return node(Mortals())
