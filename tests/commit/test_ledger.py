import pytest

from headrace._commit.ledger import Ledger
from headrace.errors import EngineError


def test_epochs_add_up() -> None:
    ledger = Ledger().add({"map": {"in": 3, "out": 3}}).add({"map": {"in": 2, "dead": 2}})
    assert ledger.counts == {"map": {"in": 5, "out": 3, "dead": 2}}
    assert ledger.problems({"map": "one"}) == []


def test_adding_leaves_the_ledger_it_began_with_alone() -> None:
    first = Ledger().add({"map": {"in": 3}})
    first.add({"map": {"in": 4}})
    assert first.count("map", "in") == 3


def test_a_lost_row_is_told_with_its_step() -> None:
    ledger = Ledger().add({"map": {"in": 5, "out": 3, "filtered": 1}})
    (problem,) = ledger.problems({"map": "one"})
    assert "'map' took in 5 rows" in problem
    assert "3 out" in problem


def test_a_window_accounts_for_rows_by_what_it_took_into_state() -> None:
    counts = {"window": {"in": 10, "held": 7, "late": 2, "dead": 1, "out": 4}}
    assert Ledger().add(counts).problems({"window": "keyed"}) == []
    assert Ledger().add({"window": {"in": 10, "held": 7}}).problems({"window": "keyed"})


def test_a_flat_map_may_yield_any_number() -> None:
    assert Ledger().add({"f": {"in": 2, "out": 9}}).problems({"f": "many"}) == []


def test_rows_lost_between_two_steps_are_told() -> None:
    ledger = Ledger().add({"source": {"out": 5}, "w": {"late": 2}, "sink": {"in": 6}})
    edges = {"sink": [("source", "out"), ("w", "late")]}
    assert ledger.problems({}, edges) == ["step 'sink' took in 6 of 7 rows"]


def test_an_unknown_count_is_our_mistake() -> None:
    with pytest.raises(EngineError, match="vanished"):
        Ledger().add({"map": {"vanished": 1}})


def test_a_split_row_is_on_one_output() -> None:
    counts = {"split": {"in": 6, "out": 1, "side:big": 3, "side:small": 2}}
    assert Ledger().add(counts).problems({"split": "one"}) == []
    (problem,) = Ledger().add({"split": {"in": 6, "side:big": 3}}).problems({"split": "one"})
    assert "3 side:big" in problem


def test_what_is_moved_comes_out_again() -> None:
    moved = {"m": {"in": 6, "held": 6, "out": 6}}
    assert Ledger().add(moved).problems({"m": "moved"}) == []
    (problem,) = Ledger().add({"m": {"in": 6, "held": 6, "out": 5}}).problems({"m": "moved"})
    assert problem == "step 'm' sent 6 rows to other shards, and 5 came out"
