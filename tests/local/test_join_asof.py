"""Versioned and as-of joins in whole jobs: as the oracle says, and as polars and pandas say of rows in order."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

import headrace as hr
from headrace._graph.join_nodes import AsOfJoin
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import LocalEpoch, cut, run_local
from headrace.testing.epochs import SidedRow, StepEpoch
from tests.examples import examples
from tests.oracle.joins.asof import AsOfOracle

START = datetime(2025, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TRADES = {"symbol": str, "n": int, "at": datetime}
QUOTES = {"symbol": str, "bid": int, "at": datetime}

#: Options of `join_asof`; None: `join_versioned`.
JOINS: list[dict[str, Any] | None] = [
    None,
    {},
    {"tolerance": 3 * SECOND, "how": "inner"},
    {"direction": "forward", "tolerance": 4 * SECOND, "allow_exact_matches": False},
    {"direction": "nearest", "tolerance": 6 * SECOND},
]
#: Ways to disturb a run; none may show.
RUNS: list[dict[str, Any]] = [
    {"shards": 1},
    {"shards": 3, "tasks": 2, "rescale": {2: 1, 4: 2}},
    {"shards": 2, "crashes": [(n, point) for n, point in enumerate(POINTS)], "rescale": {3: 3}},
]


def trade(second: float, symbol: str | None, n: int) -> dict[str, Any]:
    return {"symbol": symbol, "n": n, "at": START + second * SECOND}


def quote(second: float, symbol: str | None, bid: int) -> dict[str, Any]:
    return {"symbol": symbol, "bid": bid, "at": START + second * SECOND}


class Job:
    """Trades beside quotes, and all outputs of the join."""

    def __init__(self, trades: Any, quotes: Any, join: Any, *, behind: int, rows: int) -> None:
        self.env = hr.Environment("trades", epochs=hr.Epochs(rows=rows))
        self.sinks: dict[str, MemorySink] = {}
        strategy = hr.WatermarkStrategy.bounded_out_of_orderness(behind * SECOND)
        left, right = (
            self.env.from_source(
                MemorySource(rows, schema), watermarks=strategy.with_timestamps("at"), uid=uid
            )
            for uid, rows, schema in (("trades", trades, TRADES), ("quotes", quotes, QUOTES))
        )
        joined = (
            left.join_versioned(right, on="symbol", at=left.time, uid="join")
            if join is None
            else left.join_asof(right, on="symbol", uid="join", **join)
        )
        self._collect("main", joined)
        self._collect("late_left", joined.late_left)
        self._collect("late_right", joined.late_right)
        self._collect("errors", joined.errors)

    def _collect(self, name: str, stream: Any) -> None:
        self.sinks[name] = MemorySink()
        stream.sink_to(self.sinks[name], uid=f"sink-{name}")

    @property
    def node(self) -> AsOfJoin:
        (found,) = [node for node in self.env.graph.nodes if isinstance(node, AsOfJoin)]
        return found

    def run(self, **how: Any) -> Any:
        return run_local(self.env, **how)

    def found(self) -> dict[str, Counter[Any]]:
        rows = {name: sink.to_pylist() for name, sink in self.sinks.items()}
        rows["errors"] = [json.loads(letter["payload"]) for letter in rows["errors"]]
        return {name: bag(listed) for name, listed in rows.items()}


def bag(rows: Iterable[Mapping[str, Any]]) -> Counter[Any]:
    """Rows in whatever order; times of dead letters are texts, so they are left out."""
    return Counter(tuple(sorted((k, str(v)) for k, v in row.items() if k != "at")) for row in rows)


def expected(
    job: Job, trades: list[Any], quotes: list[Any], epochs: Iterable[LocalEpoch]
) -> dict[str, Counter[Any]]:
    """What the oracle says of these epochs."""
    oracle = AsOfOracle(job.node)
    sides = [[row for row in rows if isinstance(row, dict)] for rows in (trades, quotes)]
    answers = []
    for epoch in epochs:
        rows = [
            SidedRow((row["at"] - EPOCH) // timedelta(microseconds=1), row, side)
            for side, uid in enumerate(("trades", "quotes"))
            for start, end in epoch.ranges.get(uid, {}).values()
            for row in sides[side][start:end]
        ]
        before, reached = (
            min(marks[uid] for uid in ("trades", "quotes"))
            for marks in (epoch.before, epoch.watermarks)
        )
        answers.append(oracle.epoch(StepEpoch(before, reached, rows)))
    return {
        "main": bag(row for said in answers for _, row in said.ticked + said.settled),
        "late_left": bag(row for said in answers for row in said.late_left),
        "late_right": bag(row for said in answers for row in said.late_right),
        "errors": bag(row for said in answers for row in said.errors),
    }


@st.composite
def rows(draw: st.DrawFn, make: Any) -> list[Any]:
    """Rows whose time goes up with jumps back, with cuts between them."""
    made: list[Any] = []
    second = 0
    for n, (step, back, symbol) in enumerate(
        draw(
            st.lists(
                st.tuples(
                    st.integers(0, 3),
                    st.sampled_from([0, 0, 0, 1, 2, 4, 9]),
                    st.sampled_from(["a", "a", "b", "c", None]),
                ),
                min_size=3,
                max_size=20,
            )
        )
    ):
        second += step
        made += [cut()] if draw(st.integers(0, 6)) == 0 else []
        made.append(make(second - back, symbol, n))
    return made


@examples(60, phases=[Phase.explicit, Phase.generate])
@given(
    rows(trade),
    rows(quote),
    st.sampled_from(JOINS),
    st.sampled_from(RUNS),
    st.integers(0, 5),
    st.integers(1, 9),
)
def test_random_jobs_say_what_the_oracle_says(
    trades: Any, quotes: Any, join: Any, how: Any, behind: int, epoch_rows: int
) -> None:
    job = Job(trades, quotes, join, behind=behind, rows=epoch_rows)
    result = job.run(**how)
    assert job.found() == expected(job, trades, quotes, result.epochs)


def in_order(seed: int, *, between: float = 0.0) -> tuple[list[Any], list[Any]]:
    """Many trades and quotes in order of time, no two quotes of a symbol at once; trades are `between` seconds."""
    chance = random.Random(seed)
    trades = [
        trade(second + between, chance.choice("abcd"), n)
        for n, second in enumerate(sorted(chance.choices(range(300), k=400)))
    ]
    quotes = [
        quote(second, symbol, 1_000 * n + ord(symbol))
        for n, second in enumerate(range(300))
        for symbol in "abc"
        if chance.random() < 0.2
    ]
    return trades, quotes


ORDERED: list[dict[str, Any]] = [
    {"direction": direction, "allow_exact_matches": exact, "tolerance": tolerance}
    for direction in ("backward", "forward", "nearest")
    for exact in (True, False)
    for tolerance in (None, 2 * SECOND, 20 * SECOND)
    if tolerance is not None or direction == "backward"
]


@pytest.mark.parametrize("options", ORDERED, ids=str)
def test_rows_in_order_as_polars_and_pandas_join_them(options: dict[str, Any]) -> None:
    # What is as near before as behind would be told apart by no rule that all three have.
    nearest = options["direction"] == "nearest"
    trades, quotes = in_order(7, between=0.3 if nearest else 0.0)
    job = Job(trades, quotes, options, behind=0, rows=50)
    job.run(shards=2)
    found = sorted((row["n"], row["bid"]) for row in job.sinks["main"].to_pylist())
    assert len(found) == len(trades)
    assert 0 < sum(bid is None for _, bid in found) < len(trades)
    assert found == by_pandas(trades, quotes, options)
    assert found == by_polars(trades, quotes, options)


def by_pandas(trades: Any, quotes: Any, options: dict[str, Any]) -> list[tuple[int, int | None]]:
    tolerance = options["tolerance"]
    joined = pd.merge_asof(
        pd.DataFrame(trades),
        pd.DataFrame(quotes),
        on="at",
        by="symbol",
        **(options | {"tolerance": None if tolerance is None else pd.Timedelta(tolerance)}),
    )
    pairs = zip(joined["n"], joined["bid"], strict=True)
    return sorted((int(n), None if pd.isna(bid) else int(bid)) for n, bid in pairs)


def by_polars(trades: Any, quotes: Any, options: dict[str, Any]) -> list[tuple[int, int | None]]:
    joined = pl.DataFrame(trades).join_asof(
        pl.DataFrame(quotes),
        on="at",
        by="symbol",
        strategy=options["direction"],
        tolerance=options["tolerance"],
        allow_exact_matches=options["allow_exact_matches"],
        check_sortedness=False,
    )
    return sorted(joined.select("n", "bid").iter_rows())


def test_a_stream_beside_its_own_last_row() -> None:
    env, sink = hr.Environment("gaps", epochs=hr.Epochs(rows=4)), MemorySink()
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    rows = [trade(n, "ab"[n % 3 == 0], n) for n in range(12)]
    trades = env.from_source(MemorySource(rows, TRADES), watermarks=strategy, uid="trades")
    before = trades.join_asof(trades, on="symbol", allow_exact_matches=False, uid="before")
    before.sink_to(sink, uid="out")
    run_local(env, shards=2)
    a = [n for n in range(12) if n % 3]
    b = [n for n in range(12) if n % 3 == 0]
    expected = [pair for each in (a, b) for pair in zip(each, [None, *each], strict=False)]
    assert sorted((r["n"], r["n_right"]) for r in sink.to_pylist()) == sorted(expected)


def test_behind_a_window_and_before_one() -> None:
    # Counts of ten seconds, beside the quote of the last microsecond of each window; then their sum by minute.
    env, sink = hr.Environment("counts", epochs=hr.Epochs(rows=7)), MemorySink()
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    trades, quotes = (
        env.from_source(MemorySource(rows, schema), watermarks=strategy, uid=uid)
        for uid, rows, schema in (
            ("trades", [trade(n, "a", n) for n in range(120)], TRADES),
            ("quotes", [quote(n, "a", n) for n in range(0, 120, 10)], QUOTES),
        )
    )
    counts = (
        trades.key_by("symbol")
        .window(hr.windows.Tumbling(10 * SECOND))
        .aggregate(trades=hr.count(), uid="counts")
    )
    joined = counts.join_versioned(quotes, on="symbol", at=counts.time, uid="join")
    totals = (
        joined.select("symbol", "bid", count="trades")
        .key_by("symbol")
        .window(hr.windows.Tumbling(60 * SECOND))
        .aggregate(total=hr.sum("bid"), counted=hr.sum("count"), uid="totals")
    )
    totals.sink_to(sink, uid="out")
    run_local(env, shards=2, crashes=[(3, "staged")])
    found = [(r["window_start"] - START, r["total"], r["counted"]) for r in sink.to_pylist()]
    # The windows of a minute have the quotes 0, 10, ..., 50 and 60, ..., 110.
    assert sorted(found) == [(0 * SECOND, 150, 60), (60 * SECOND, 510, 60)]


def test_versions_that_end() -> None:
    env, sink = hr.Environment("ended", epochs=hr.Epochs(rows=2)), MemorySink()
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    changes = [(0, "+I"), (3, "-U"), (3, "+U"), (6, "-D"), (8, "+I"), (8, "-D"), (8, "+I")]
    quotes = MemorySource(
        [quote(at, "a", n) | {"change": change} for n, (at, change) in enumerate(changes)],
        QUOTES | {"change": str},
    )
    quotes.carries_changes = True
    left, right = (
        env.from_source(source, watermarks=strategy, uid=uid)
        for uid, source in (
            ("trades", MemorySource([trade(n, "a", n) for n in range(10)], TRADES)),
            ("quotes", quotes),
        )
    )
    left.join_versioned(right, on="symbol", uid="join").sink_to(sink, uid="out")
    run_local(env, shards=2, crashes=[(1, "staged")])
    found = sorted((row["n"], row["bid"]) for row in sink.to_pylist())
    assert found == [(0, 0), (1, 0), (2, 0), (3, 2), (4, 2), (5, 2), (8, 6), (9, 6)]


def test_counts_of_the_join() -> None:
    trades = [trade(1, "a", 1), trade(2, None, 2), trade(9, "b", 3), cut(), trade(1, "a", 4)]
    quotes = [quote(0, "a", 1), quote(9, None, 2), quote(9, "b", 3), cut(), quote(2, "a", 4)]
    job = Job(trades, quotes, {}, behind=0, rows=50)
    result = job.run(shards=2)
    assert result.counts["join"] == {
        "in": 8, "dead": 1, "late": 1, "late_right": 1, "held": 5, "out": 3,
    }  # fmt: skip
    assert result.metrics["join"] == {"null_keys": 1}
