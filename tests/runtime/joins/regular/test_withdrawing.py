"""Rows that withdraw others: found by content, whatever is in it; what is not there is counted."""

from __future__ import annotations

from typing import Any

import pytest

from headrace._graph.changes import CHANGE
from headrace._graph.join_nodes import Keep
from headrace._graph.nodes import ERRORS, MAIN
from headrace.testing.epochs import SidedRow
from headrace.testing.step_harness import PHASE, TIME, StepHarness
from tests.runtime.joins.regular.cases import (
    compare,
    epochs_of,
    join_node,
    letters,
    row,
    shown,
)

NESTED = ["tags", "position", "counts", "x"]
PLACE = {"x": float("nan"), "names": ["", None]}
#: Pairs of values that are not the same, column by column.
DIFFERENT: dict[str, tuple[Any, Any]] = {
    "tags": ([1, None], [None, 1]),
    "position": ({"x": 1.0, "names": []}, {"x": 1.0, "names": None}),
    "counts": ([("a", 1)], [("a", None)]),
    "x": (None, float("nan")),
}


def wide(change: str, **values: Any) -> SidedRow:
    """A left row with a column of each kind."""
    usual = {"tags": [1, None], "position": PLACE, "counts": [("a", 1), ("b", None)], "x": 0.0}
    fields = {f"{name}0": value for name, value in (usual | values).items()}
    return SidedRow(0, {"key": "a", "n0": 1, **fields, CHANGE: change}, 0)


def nested_node(how: str = "inner") -> Any:
    return join_node(how, values=[["n", *NESTED], ["n"]], changing=[True, False])


@pytest.mark.parametrize("how", ["inner", "left", "semi"])
def test_a_row_with_nested_columns_is_found(how: str) -> None:
    epochs = epochs_of([wide("+I"), wide("+I", x=-0.0), row(1, "a", 5)], [wide("-D"), wide("-U")])
    harness = compare(nested_node(how), epochs, batch_rows=1)
    assert "unknown_withdrawals" not in harness.metrics.readings()


@pytest.mark.parametrize("name", DIFFERENT)
def test_rows_that_differ_in_one_column_are_told_apart(name: str) -> None:
    one, other = DIFFERENT[name]
    right = row(1, "a", 5)
    for kept, sent in ((one, other), (other, one)):
        epochs = epochs_of([wide("+I", **{name: kept}), right], [wide("-D", **{name: sent})])
        harness = compare(nested_node(), epochs)
        assert harness.metrics.readings() == {"unknown_withdrawals": 1}


def test_a_withdrawal_of_what_is_not_there_is_counted_and_nothing_else() -> None:
    node = join_node("full", changing=[True, True])
    plus = [row(0, "a", 1, "+I"), row(1, "a", 5, "+I")]
    minus = [row(0, "a", 2, "-D"), row(0, "b", 1, "-U"), row(1, "a", 5, "-D"), row(1, "a", 5, "-D")]
    harness = compare(node, epochs_of(plus, minus), shards=2)
    assert harness.metrics.readings() == {"unknown_withdrawals": 3}


def test_a_row_and_its_withdrawal_of_one_epoch_are_nothing_in_either_order() -> None:
    node = join_node("full", changing=[True, True])
    kept = [row(0, "a", 1, "+I"), row(1, "a", 5, "+I")]
    for left, right in (("+I", "-D"), ("-D", "+I"), ("-U", "+U")):
        both = [row(side, "a", 7, change) for change in (left, right) for side in (0, 1)]
        harness = StepHarness(node, 2)
        epochs = epochs_of(both, kept, both)
        assert [len(harness.epoch(epoch).get(MAIN, [])) for epoch in epochs] == [0, 1, 0]
        assert harness.metrics.readings() == {}


def test_of_equal_rows_as_many_go_as_are_withdrawn() -> None:
    node = join_node(changing=[True, False])
    four = [row(0, "a", 1, "+I")] * 4
    minus = [row(0, "a", 1, "-D")] * 3
    harness = StepHarness(node)
    outs = [
        harness.epoch(e).get(MAIN, []) for e in epochs_of([*four, row(1, "a", 5)], minus, minus)
    ]
    assert [[r[CHANGE] for r in out] for out in outs] == [["+I"] * 4, ["-D"] * 3, ["-D"]]
    assert harness.metrics.readings() == {"unknown_withdrawals": 2}


def test_an_update_of_both_sides_withdraws_the_old_pair_and_shows_the_new_one() -> None:
    node = join_node("full", changing=[True, True])
    old = [row(0, "a", 1, "+I"), row(1, "a", 5, "+I")]
    update = [
        row(0, "a", 1, "-U"), row(0, "a", 2, "+U"), row(1, "a", 5, "-U"), row(1, "a", 6, "+U"),
    ]  # fmt: skip
    harness = StepHarness(node)
    harness.epoch(epochs_of(old)[0])
    out = harness.epoch(epochs_of(old, update)[1])[MAIN]
    assert [(r[CHANGE], r["n0"], r["n1"]) for r in out] == [("-U", 1, 5), ("+U", 2, 6)]


def test_a_partner_that_is_replaced_is_not_missed() -> None:
    node = join_node("left", keeps=[None, Keep("last")])
    harness = StepHarness(node)
    outs = [
        harness.epoch(epoch)[MAIN]
        for epoch in epochs_of([row(0, "a", 1), row(1, "a", 5)], [row(1, "a", 6), row(1, "a", 7)])
    ]
    assert [[(r[CHANGE], r["n1"]) for r in out] for out in outs] == [
        [("+I", 5)],
        [("-U", 5), ("+U", 7)],
    ]


def test_a_row_without_a_key_comes_alone_or_is_a_dead_letter() -> None:
    node = join_node("left", changing=[True, True])
    rows = [row(0, None, 1, "+I"), row(1, None, 5, "+I"), row(1, "a", 6, "+I")]
    harness = StepHarness(node, 2)
    out = harness.epoch(epochs_of(rows)[0])
    assert [(r[CHANGE], r["key"], r["n0"], r["n1"]) for r in out[MAIN]] == [("+I", None, 1, None)]
    assert letters(out) == [{"key": None, "n1": 5, CHANGE: "+I"}]
    assert out[ERRORS][0]["cause"] == "null key 'key'"
    assert harness.metrics.readings() == {"null_keys": 1}
    # Nobody remembers it: it is withdrawn as it came.
    gone = harness.epoch(epochs_of(rows, [row(0, None, 1, "-D")])[1])
    assert [r[CHANGE] for r in gone[MAIN]] == ["-D"]


def test_changes_of_a_kept_row() -> None:
    node = join_node(values=[["n"]], keeps=[Keep("last")], changing=[True])
    harness = StepHarness(node)
    phases = [
        [row(0, "a", 1, "+I")],
        [row(0, "a", 1, "-U"), row(0, "a", 2, "+U")],
        [row(0, "a", 2, "-D")],
        [row(0, "a", 2, "-D")],
        [row(0, "a", 3, "+I"), row(0, "a", 3, "-D")],
        [row(0, "a", 4, "+U")],
    ]
    outs = [harness.epoch(epoch).get(MAIN, []) for epoch in epochs_of(*phases)]
    assert [[(r[CHANGE], r["n0"]) for r in out] for out in outs] == [
        [("+I", 1)],
        [("-U", 1), ("+U", 2)],
        [("-D", 2)],
        [],
        [],
        [("+I", 4)],
    ]


def test_results_have_the_time_of_the_row_that_caused_them() -> None:
    node = join_node("left", changing=[True, True])
    harness = StepHarness(node, stamped=True)
    phases = [
        [row(0, "a", 1, "+I", at=40)],
        [row(1, "a", 5, "+I", at=7), row(1, "a", 6, "+I", at=9)],
        [row(0, "a", 2, "+I", at=3)],
        [row(1, "a", 5, "-D", at=11), row(1, "a", 6, "-D", at=2)],
    ]
    outs = [harness.epoch(epoch)[MAIN] for epoch in epochs_of(*phases)]
    assert [[(r[CHANGE], r["n0"], r["n1"], r[TIME]) for r in out] for out in outs] == [
        [("+I", 1, None, 40)],
        # What stood alone goes with the last row that came.
        [("-D", 1, None, 9), ("+I", 1, 5, 7), ("+I", 1, 6, 9)],
        [("+I", 2, 5, 3), ("+I", 2, 6, 3)],
        [
            ("-D", 1, 5, 11), ("-D", 2, 5, 11), ("-D", 1, 6, 2), ("-D", 2, 6, 2),
            ("+I", 1, None, 11), ("+I", 2, None, 11),
        ],
    ]  # fmt: skip
    assert all(r[PHASE] == "after" for out in outs for r in out)


def test_keys_that_are_equal_look_alike() -> None:
    node = join_node("full", key="float", changing=[True, True])
    nan, zero = float("nan"), -0.0
    plus = [row(0, nan, 1, "+I"), row(1, nan, 5, "+I"), row(0, 0.0, 2, "+I"), row(1, zero, 6, "+I")]
    minus = [row(0, nan, 1, "-D"), row(1, 0.0, 6, "-D")]
    harness = compare(node, epochs_of(plus, minus), shards=3)
    assert harness.metrics.readings() == {}
    out = StepHarness(node).epoch(epochs_of(plus)[0])[MAIN]
    assert {shown(r)[0] for r in out} == {("key", "a NaN"), ("key", 0.0)}
    assert "-0.0" not in {str(r["key"]) for r in out}


@pytest.mark.parametrize("how", ["inner", "full", "semi", "anti"])
def test_rows_that_are_nothing_but_keys(how: str) -> None:
    node = join_node(how, key="two", values=[[], []], changing=[True, True])

    def bare(side: int, key: str, part: int | None, change: str) -> SidedRow:
        return SidedRow(0, {"key": key, "part": part, CHANGE: change}, side)

    plus = [bare(side, key, 1, "+I") for side in (0, 1, 1) for key in ("", "a")]
    minus = [bare(1, "a", 1, "-D"), bare(1, "a", 1, "-U"), bare(0, "", 2, "-D")]
    harness = compare(node, epochs_of([*plus, bare(0, "a", None, "+I")], minus), shards=2)
    assert harness.metrics.readings()["unknown_withdrawals"] == 1
