"""Rows that have lived long enough leave quietly: what is shown of them stays, and nothing is shown for their sake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headrace._graph.changes import CHANGE
from headrace._graph.join_nodes import Keep
from headrace._graph.nodes import MAIN
from headrace.testing.epochs import SidedRow
from headrace.testing.step_harness import StepHarness
from tests.runtime.joins.regular.cases import check, epochs_of, join_node, row

#: By epoch: (change, n of the left, n of the right).
Said = list[list[tuple[Any, ...]]]


def said(node: Any, *phases: Sequence[SidedRow]) -> Said:
    """What a join says of each list of rows; the clock moves by one between them."""
    epochs = epochs_of(*phases)
    check(StepHarness(node, stamped=True), epochs)
    harness = StepHarness(node)
    told = [column.name for column in node.columns if column.name != "key"]
    return [
        [
            (r.get(CHANGE, "+I"), *(r[name] for name in told))
            for r in harness.epoch(epoch).get(MAIN, [])
        ]
        for epoch in epochs
    ]


def test_a_left_row_whose_partner_ran_out_is_not_shown_alone() -> None:
    node = join_node("left", ttls=[None, 2])
    assert said(node, [row(0, "a", 1), row(1, "a", 5)], [], [], [row(0, "a", 2)]) == [
        [("+I", 1, 5)],
        [],
        [],
        [("+I", 2, None)],
    ]


def test_what_was_not_shown_alone_is_not_withdrawn_when_the_next_partner_comes() -> None:
    node = join_node("left", ttls=[None, 2])
    assert said(node, [row(0, "a", 1), row(1, "a", 5)], [], [], [row(1, "a", 6)]) == [
        [("+I", 1, 5)],
        [],
        [],
        [("+I", 1, 6)],
    ]


def test_of_two_left_rows_each_knows_whether_it_was_shown_alone() -> None:
    node = join_node("left", ttls=[None, 2])
    first, then = [row(0, "a", 1), row(1, "a", 5)], [row(0, "a", 2)]
    assert said(node, first, [], [], then, [row(1, "a", 6)])[3:] == [
        [("+I", 2, None)],
        [("-D", 2, None), ("+I", 1, 6), ("+I", 2, 6)],
    ]


def test_a_withdrawn_partner_is_not_missed_if_another_had_run_out() -> None:
    node = join_node("left", changing=[False, True], ttls=[None, 3])
    assert said(
        node,
        [row(0, "a", 1), row(1, "a", 5, "+I")],
        [],
        [row(1, "a", 6, "+I")],
        [row(0, "a", 2)],
        [row(1, "a", 6, "-D")],
    )[2:] == [[("+I", 1, 6)], [("+I", 2, 6)], [("-D", 1, 6), ("-D", 2, 6), ("+I", 2, None)]]


def test_a_withdrawal_of_what_ran_out_changes_nothing() -> None:
    node = join_node("full", changing=[True, True], ttls=[2, 2])
    first = [row(0, "a", 1, "+I"), row(1, "a", 5, "+I"), row(0, "b", 2, "+I")]
    then = [row(0, "a", 1, "-D"), row(1, "a", 5, "-D"), row(0, "b", 2, "-D")]
    assert said(node, first, [], then)[1:] == [[], []]


def test_both_sides_of_a_full_join_run_out() -> None:
    node = join_node("full", ttls=[3, 3])
    assert said(
        node, [row(0, "a", 1)], [row(1, "a", 5)], [], [row(1, "a", 6)], [row(0, "a", 2)]
    ) == [
        [("+I", 1, None)],
        [("-D", 1, None), ("+I", 1, 5)],
        [],
        # The left row has run out, so this one meets nobody.
        [("+I", None, 6)],
        # The first right row has run out, too; it was met.
        [("-D", None, 6), ("+I", 2, 6)],
    ]


def test_a_left_row_that_ran_out_stays_as_it_was_shown() -> None:
    node = join_node("left", ttls=[2, None])
    assert said(node, [row(0, "a", 1)], [], [row(1, "a", 5)], [row(0, "a", 2)]) == [
        [("+I", 1, None)],
        [],
        [],
        [("+I", 2, 5)],
    ]


@pytest.mark.parametrize("changing", [False, True])
def test_a_row_of_a_semi_join_comes_once_however_often_its_partners_run_out(changing: bool) -> None:
    node = join_node("semi", changing=[changing, False], ttls=[None, 1])
    left = row(0, "a", 1, "+I" if changing else None)
    phases = [[left], [row(1, "a", 5)], [row(1, "a", 6)], [], [row(1, "a", 7)]]
    assert [[shown[1] for shown in epoch] for epoch in said(node, *phases)] == [[], [1], [], [], []]


def test_a_semi_join_keeps_a_row_while_a_partner_that_ran_out_stands_for_it() -> None:
    node = join_node("semi", changing=[True, True], ttls=[None, 2])
    assert said(
        node,
        [row(0, "a", 1, "+I"), row(1, "a", 5, "+I")],
        [row(1, "a", 6, "+I")],
        [row(1, "a", 6, "-D")],
        [row(0, "a", 1, "-D")],
    ) == [[("+I", 1)], [], [], [("-D", 1)]]


@pytest.mark.parametrize("changing", [False, True])
def test_an_anti_join_does_not_show_again_what_had_a_partner(changing: bool) -> None:
    node = join_node("anti", changing=[changing, False], ttls=[None, 2])
    plus = "+I" if changing else None
    assert said(
        node,
        [row(0, "a", 1, plus)],
        [row(1, "a", 5)],
        [],
        [row(0, "a", 2, plus)],
        [row(1, "a", 6)],
        [],
    ) == [[("+I", 1)], [("-D", 1)], [], [("+I", 2)], [("-D", 2)], []]


def test_a_row_that_took_anothers_place_lives_on_its_own() -> None:
    node = join_node(values=[["n"]], keeps=[Keep("last")], ttls=[3])
    assert said(node, [row(0, "a", 1)], [row(0, "a", 2)], [], [], [row(0, "a", 3)]) == [
        [("+I", 1)],
        [("-U", 1), ("+U", 2)],
        [],
        [],
        # The second ran out just now; nobody is replaced.
        [("+I", 3)],
    ]


@pytest.mark.parametrize("rule", ["first", "top"])
def test_the_next_row_may_be_first_or_best_when_the_one_before_ran_out(rule: Any) -> None:
    keep = Keep("first") if rule == "first" else Keep("top", ("n0",), (True,))
    node = join_node(values=[["n"]], keeps=[keep], ttls=[2])
    assert said(node, [row(0, "a", 9)], [row(0, "a", 2)], [row(0, "a", 1)]) == [
        [("+I", 9)],
        [],
        [("+I", 1)],
    ]


def test_a_row_lives_up_to_the_last_microsecond() -> None:
    node = join_node(ttls=[64_000_000, 64_000_000])
    epochs = epochs_of([row(0, "a", 1)], [row(1, "a", 5)], [row(1, "a", 6)], step=63_999_999)
    second = epochs[1]._replace(clock=epochs[0].clock + 63_999_999)
    third = epochs[2]._replace(clock_before=second.clock, clock=second.clock + 1)
    harness = StepHarness(node, 2)
    outs = [harness.epoch(epoch).get(MAIN, []) for epoch in (epochs[0], second, third)]
    assert [[r["n1"] for r in out] for out in outs] == [[], [5], []]
