"""What a regular join keeps: rows that can still meet somebody, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headrace._graph.join_nodes import Keep, RegularJoin
from headrace._runtime import registry
from headrace._runtime.state import MemoryArrays, ShardState
from headrace.testing.epochs import SidedRow
from headrace.testing.step_harness import StepHarness
from tests.runtime.joins.regular.cases import check, epochs_of, join_node, row


def kept(node: RegularJoin, *phases: Sequence[SidedRow]) -> dict[str, int]:
    """The rows of state behind these epochs, as a restore sees them; the counters of arrivals are left out."""
    harness = StepHarness(node, stamped=True)
    check(harness, epochs_of(*phases))
    specs = registry.tables(node)
    state = ShardState(specs, harness.stores[0], MemoryArrays(), range(128))
    state.open()
    sizes = {s.name: sum(state.table(s.name, b).size for b in state.buckets(s.name)) for s in specs}
    return {name: size for name, size in sizes.items() if size and name != "arrivals"}


def test_all_rows_of_all_inputs_are_kept() -> None:
    rows = [row(0, "a", 1), row(0, "a", 1), row(1, "a", 5), row(1, "b", 5)]
    assert kept(join_node(), rows) == {"side 0": 2, "side 1": 2}


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_that_met_the_one_row_of_its_key_is_gone(order: int) -> None:
    node = join_node(keeps=[None, Keep("first")])
    phases = [[row(0, "a", 1), row(0, "b", 2)], [row(1, "a", 5), row(1, "c", 6)]]
    assert kept(node, *phases[::order]) == {"side 0": 1, "side 1": 2}
    assert kept(node, [*phases[0], *phases[1]]) == {"side 0": 1, "side 1": 2}
    # Later ones are not even kept.
    assert kept(node, *phases, [row(0, "a", 3)]) == {"side 0": 1, "side 1": 2}


def test_a_left_row_waits_for_the_one_row_and_is_gone() -> None:
    node = join_node("left", keeps=[None, Keep("first")])
    assert kept(node, [row(0, "a", 1)]) == {"side 0": 1}
    assert kept(node, [row(0, "a", 1)], [row(1, "a", 5)]) == {"side 1": 1}


def test_a_row_of_several_inputs_waits_for_all() -> None:
    node = join_node(values=[["n"]] * 3, keeps=[None, Keep("first"), Keep("first")])
    left, first, second = row(0, "a", 1), row(1, "a", 2), row(2, "a", 3)
    assert kept(node, [left], [first]) == {"side 0": 1, "side 1": 1}
    assert kept(node, [left], [first], [second]) == {"side 1": 1, "side 2": 1}
    assert kept(node, [first], [left, second]) == {"side 1": 1, "side 2": 1}
    assert kept(node, [left, first, second]) == {"side 1": 1, "side 2": 1}


@pytest.mark.parametrize("how", ["semi", "anti"])
@pytest.mark.parametrize("ends", [None, 2])
def test_one_partner_decides_a_semi_or_anti_join(how: str, ends: int | None) -> None:
    keeps = [None, Keep("first") if ends is None else None]
    node = join_node(how, keeps=keeps, ttls=[None, ends])
    left, right = [row(0, "a", 1), row(0, "b", 2)], [row(1, "a", 5)]
    assert kept(node, left, right)["side 0"] == 1
    assert kept(node, right, left)["side 0"] == 1
    assert kept(node, [*left, *right])["side 0"] == 1


def test_of_the_right_of_a_semi_join_one_row_is_enough() -> None:
    node = join_node("semi", keeps=[None, Keep("first")])
    assert kept(node, [row(1, "a", n) for n in range(5)], [row(1, "a", 9)]) == {"side 1": 1}


@pytest.mark.parametrize("changing", [[True, False], [False, True]])
def test_nothing_is_spent_that_may_be_withdrawn(changing: list[bool]) -> None:
    def sent(side: int) -> Any:
        return row(side, "a", 1, "+I" if changing[side] else None)

    node = join_node("semi", changing=changing)
    assert kept(node, [sent(0)], [sent(1)]) == {"side 0": 1, "side 1": 1}


def test_a_withdrawn_row_is_gone() -> None:
    node = join_node("full", changing=[True, True])
    plus = [row(0, "a", 1, "+I"), row(1, "a", 5, "+I")]
    assert kept(node, plus, [row(0, "a", 1, "-D"), row(1, "a", 5, "-U")]) == {}
    both = [*plus, row(0, "a", 1, "-D"), row(1, "a", 5, "-U")]
    assert kept(node, both) == {}


def test_what_ran_out_is_gone_with_the_note_of_its_end() -> None:
    node = join_node("full", changing=[True, True], ttls=[2, 2])
    rows = [row(0, "a", 1, "+I"), row(1, "a", 5, "+I"), row(0, "b", 2, "+I")]
    assert kept(node, rows, [row(0, "b", 2, "-D")]) == {
        "side 0": 1, "side 1": 1, "ends 0:0": 2, "ends 1:0": 1,
    }  # fmt: skip
    harness = StepHarness(node, stamped=True)
    check(harness, epochs_of(rows, [], step=2_000_000))
    state = ShardState(registry.tables(node), harness.stores[0], MemoryArrays(), range(128))
    state.open()
    assert not any(state.buckets(s.name) for s in registry.tables(node) if s.name != "arrivals")


def test_of_one_row_a_key_there_is_one() -> None:
    for keep in (Keep("first"), Keep("last"), Keep("top", ("n0",), (True,))):
        node = join_node(values=[["n"]], keeps=[keep])
        rows = [[row(0, key, n) for key in "ab"] for n in (3, 1, 5)]
        assert kept(node, *rows) == {"side 0": 2}
