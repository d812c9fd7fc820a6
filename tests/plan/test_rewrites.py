"""What the planner folds into joins, what it must not, and that results stay as they are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace._graph.join_nodes import KeepRow, RegularJoin, TopPairJoin, WindowExtreme
from headrace._graph.nodes import Port
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import cut, run_local

IN_TIME = (hr.col("time") >= hr.col("low")) & (hr.col("time") <= hr.col("high"))


def auctions_and_bids(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    drawn = random.Random(seed)
    auctions = [
        {"id": n, "low": drawn.randrange(5), "high": drawn.randrange(3, 12), "category": n % 3}
        for n in range(12)
    ]
    auctions += [drawn.choice(auctions) | {"low": 0} for _ in range(3)]
    drawn.shuffle(auctions)
    bids = [
        {"auction": drawn.randrange(14), "price": drawn.randrange(6), "time": drawn.randrange(12)}
        for n in range(60)
    ]
    return auctions, bids


def job(
    build: Callable[[hr.Stream, hr.Stream], hr.Stream], seed: int = 0
) -> tuple[hr.Environment, MemorySink]:
    env, out = hr.Environment("folding"), MemorySink()
    auctions, bids = auctions_and_bids(seed)
    made = build(
        env.from_source(MemorySource(auctions), uid="auctions"),
        env.from_source(MemorySource(bids), uid="bids"),
    )
    made.sink_to(out, uid="out")
    return env, out


def planned(build: Callable[[hr.Stream, hr.Stream], hr.Stream]) -> dict[str, Any]:
    env, _ = job(build)
    return {node.uid: node for node in env.plan().nodes.values() if isinstance(node, RegularJoin)}


def winning(auctions: hr.Stream, bids: hr.Stream, *keys: str) -> hr.Stream:
    """Nexmark's q9; and q4 with the category among the keys."""
    first = auctions.key_by("id").first(uid="first")
    pairs = first.join(bids, left_on="id", right_on="auction", where=IN_TIME, uid="pairs")
    return pairs.key_by(*(keys or ("id",))).top(
        ["price", "time"], descending=[True, False], uid="winning"
    )


def net(sink: MemorySink) -> Counter[str]:
    """What is left when all changes are applied; nothing is withdrawn that is not there."""
    left: Counter[str] = Counter()
    for row in sink.to_pylist():
        change = row.pop("change", "+I")
        left[repr(row)] += 1 if change[0] == "+" else -1
        assert left[repr(row)] >= 0
    return +left


@pytest.mark.parametrize("rule", ["first", "last"])
def test_the_one_row_of_a_key_is_kept_by_the_join(rule: str) -> None:
    def build(auctions: hr.Stream, bids: hr.Stream) -> hr.Stream:
        one = getattr(auctions.key_by("id"), rule)(uid="one")
        return bids.join(one, left_on="auction", right_on="id", uid="join")

    (join,) = planned(build).values()
    assert join.keeps[1].rule == rule
    assert (join.uid, join.spends(0)) == ("join", rule == "first")


def test_the_best_pair_is_kept_by_one_step() -> None:
    (join,) = planned(winning).values()
    assert isinstance(join, TopPairJoin)
    assert (join.uid, join.unique) == ("winning", 0)


def test_what_the_one_row_says_may_be_among_the_keys() -> None:
    (join,) = planned(lambda a, b: winning(a, b, "id", "category")).values()
    assert isinstance(join, TopPairJoin)


def test_pairs_ranked_by_something_else_stay_as_they_are() -> None:
    assert set(planned(lambda a, b: winning(a, b, "category"))) == {"pairs", "winning"}


def test_a_step_that_somebody_else_looks_at_is_not_folded() -> None:
    def build(auctions: hr.Stream, bids: hr.Stream) -> hr.Stream:
        one = auctions.key_by("id").last(uid="one")
        one.sink_to(MemorySink(), uid="seen")
        return bids.join(one, left_on="auction", right_on="id", uid="join")

    assert {type(node) for node in planned(build).values()} == {KeepRow, RegularJoin}


def test_rows_that_live_for_a_time_are_not_folded() -> None:
    def build(auctions: hr.Stream, bids: hr.Stream) -> hr.Stream:
        one = auctions.key_by("id").last(ttl=timedelta(hours=1), uid="one")
        return bids.join(one, left_on="auction", right_on="id", uid="join")

    assert set(planned(build)) == {"one", "join"}


def test_rows_of_a_preserved_side_are_not_folded() -> None:
    def build(auctions: hr.Stream, bids: hr.Stream) -> hr.Stream:
        one = auctions.key_by("id").last(uid="one")
        return one.join(bids, left_on="id", right_on="auction", how="left", uid="join")

    assert set(planned(build)) == {"one", "join"}


def test_explain_says_which_steps_another_one_does() -> None:
    env, _ = job(winning)
    told = env.explain()
    assert told.count("(done by the step behind it)") == 2
    assert "keeping the first row of 0" in told


@pytest.mark.parametrize("seed", range(6))
def test_folded_steps_say_what_they_say_alone(seed: int) -> None:
    found = []
    for folds in (True, False):

        def build(auctions: hr.Stream, bids: hr.Stream, folds: bool = folds) -> hr.Stream:
            result = winning(auctions, bids)
            if not folds:
                graph = result._graph
                pairs = next(node for node in graph.nodes if node.uid == "pairs")
                hr.Stream(graph, Port(pairs.id)).sink_to(MemorySink(), uid="seen")
            return result

        env, out = job(build, seed)
        run_local(env, 2, epochs=hr.Epochs(rows=4), rescale={5: 3})
        found.append(net(out))
    assert found[0]
    assert found[0] == found[1]


def highest_bids(*, seen: bool) -> tuple[hr.Environment, MemorySink]:
    """Nexmark's q7: the bids with the highest price of their window."""
    env, out = hr.Environment("highest"), MemorySink()
    drawn = random.Random(7)
    start = datetime(2025, 1, 1, tzinfo=UTC)
    rows = [
        {"auction": n % 5, "price": drawn.randrange(20), "at": start + timedelta(seconds=n / 3)}
        for n in range(200)
    ]
    bound = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=2))
    bids = env.from_source(MemorySource(rows), watermarks=bound.with_timestamps("at"), uid="bids")
    ten = hr.windows.Tumbling(timedelta(seconds=10))
    highest = bids.window_all(ten).aggregate(price=hr.max("price"), uid="highest")
    if seen:
        highest.sink_to(MemorySink(), uid="seen")
    joined = bids.window_join(highest, ten, on="price", how="semi", uid="winners")
    joined.sink_to(out, uid="out")
    return env, out


def test_bids_with_the_highest_price_of_their_window_need_no_join() -> None:
    env, _ = highest_bids(seen=False)
    steps = [node for node in env.plan().nodes.values() if node.keyed]
    assert [type(step) for step in steps] == [WindowExtreme]
    assert (steps[0].uid, steps[0].column, steps[0].greatest) == ("winners", "price", True)


def test_they_are_the_same_bids_as_those_of_the_join() -> None:
    found = []
    for seen in (False, True):
        env, out = highest_bids(seen=seen)
        run_local(env, 2, epochs=hr.Epochs(rows=20), rescale={4: 3})
        found.append(net(out))
    assert found[0]
    assert found[0] == found[1]


@pytest.mark.parametrize("folds", [True, False])
def test_a_null_among_what_pairs_are_ranked_by_is_a_dead_letter_of_a_folded_step_too(
    folds: bool,
) -> None:
    env, out, dead = hr.Environment("nulls"), MemorySink(), MemorySink()
    auctions = [{"id": 1, "seller": "ada"}, {"id": 2, "seller": None}]
    bids = [{"auction": n % 2 + 1, "price": n} for n in range(6)]
    first = env.from_source(MemorySource(auctions), uid="auctions").key_by("id").first(uid="first")
    pairs = first.join(
        env.from_source(MemorySource(bids), uid="bids"),
        left_on="id",
        right_on="auction",
        uid="pairs",
    )
    if not folds:
        pairs.sink_to(MemorySink(), uid="seen")
    best = pairs.key_by("id", "seller").top("price", uid="best")
    best.sink_to(out, uid="out")
    best.errors.sink_to(dead, uid="dead")
    run_local(env, 2, epochs=hr.Epochs(rows=2))
    assert [row["seller"] for row in out.to_pylist() if row["change"] == "+I"] == ["ada"]
    assert [letter["uid"] for letter in dead.to_pylist()] == ["best"] * 3


def timed(rows: list[dict[str, Any]]) -> Any:
    """Rows whose minute is their event time; None begins another epoch."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    return MemorySource(
        [cut() if r is None else r | {"at": start + timedelta(minutes=r["minute"])} for r in rows]
    )


def counted(
    lefts: list[Any], rights: list[Any], build: Callable[..., hr.Stream], *, folds: bool
) -> list[tuple[Any, ...]]:
    """What windows of ten minutes behind a join count: the timestamps of its results."""
    env, out = hr.Environment("timed"), MemorySink()
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    streams = [
        env.from_source(timed(rows), watermarks=strategy, uid=uid)
        for uid, rows in (("lefts", lefts), ("rights", rights))
    ]
    result = build(*streams, (lambda _: None) if folds else (lambda s: s.sink_to(MemorySink())))
    window = result.key_by("id").window(hr.windows.Tumbling(timedelta(minutes=10)))
    window.aggregate(rows=hr.count(), uid="counted").sink_to(out, uid="out")
    run_local(env, 2)
    return sorted((r["id"], r["window_start"].minute, r["rows"]) for r in out.to_pylist())


@pytest.mark.parametrize("folds", [True, False])
def test_the_best_pair_has_the_time_of_the_row_that_made_it(folds: bool) -> None:
    def build(auctions: Any, bids: Any, see: Any) -> hr.Stream:
        first = auctions.key_by("id").first(uid="first")
        pairs = first.join(bids, left_on="id", right_on="auction", uid="pairs")
        see(pairs)
        return pairs.key_by("id").top("price", uid="best")

    auctions = [{"id": 1, "minute": 0}, None, {"id": 2, "minute": 40}]
    dear, cheap = ({"auction": 1, "price": n, "minute": m} for n, m in ((100, 5), (3, 15)))
    bids = [{"auction": 9, "price": 0, "minute": 0}, None, dear, cheap, None]
    bids.append({"auction": 9, "price": 0, "minute": 40})
    assert counted(auctions, bids, build, folds=folds) == [(1, 0, 1)]


@pytest.mark.parametrize("folds", [True, False])
def test_a_row_that_came_in_vain_withdraws_nothing(folds: bool) -> None:
    def build(orders: Any, rates: Any, see: Any) -> hr.Stream:
        first = rates.key_by("key").first(uid="first")
        see(first)
        return orders.join(first, on="key", how="left", uid="join")

    orders = [{"id": 1, "key": 1, "minute": 0}, None, {"id": 2, "key": 9, "minute": 40}]
    first, vain = ({"key": 1, "rate": n, "minute": m} for n, m in ((5, 3), (6, 15)))
    rates = [{"key": 8, "rate": 0, "minute": 0}, None, first, vain, None]
    rates.append({"key": 8, "rate": 0, "minute": 40})
    assert (1, 0, 1) in counted(orders, rates, build, folds=folds)
    assert not [row for row in counted(orders, rates, build, folds=folds) if row[:2] == (1, 10)]
