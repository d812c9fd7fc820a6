"""Interval joins in whole jobs: as all pairs say, whatever happens, with every row accounted for."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace._graph.join_nodes import IntervalJoin
from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT, MAIN
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import LocalEpoch, cut, run_local
from headrace.testing.epochs import SidedRow, StepEpoch
from tests.oracle.joins.interval import IntervalOracle

START = datetime(2025, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ORDERS = {"id": str, "n": int, "at": datetime}
PAYMENTS = {"id": str, "paid": int, "at": datetime}
OUTPUTS = (MAIN, LATE, LATE_RIGHT, ERRORS)

#: Ways to disturb a run; none may show.
RUNS: list[dict[str, Any]] = [
    {"shards": 1},
    {"shards": 3, "tasks": 2, "rescale": {2: 1, 4: 2}},
    {"shards": 2, "crashes": [(n, point) for n, point in enumerate(POINTS)], "rescale": {3: 3}},
]


def rows(count: int, seed: int, number: str) -> list[Any]:
    """Rows out of order by up to four seconds, some far behind, some without a key; cuts at random."""
    chance, made = random.Random(seed), []
    for n in range(count):
        second = n // 4 + chance.uniform(0, 4) - (9 if chance.random() < 0.05 else 0)
        key = None if chance.random() < 0.05 else chance.choice(["a", "b", "c", "", "ä"])
        made.append({"id": key, number: n, "at": START + second * SECOND})
        if chance.random() < 0.07:
            made.append(cut())
    return made


class Job:
    """Orders near payments, and all outputs of the join."""

    def __init__(
        self, orders: list[Any], payments: list[Any], *interval: timedelta, **how: Any
    ) -> None:
        self.env = hr.Environment("orders", epochs=hr.Epochs(rows=25))
        self.orders, self.payments = orders, payments
        strategy = hr.WatermarkStrategy.bounded_out_of_orderness(2 * SECOND).with_timestamps("at")
        left, right = (
            self.env.from_source(MemorySource(mine, schema), watermarks=strategy, uid=uid)
            for uid, mine, schema in (("orders", orders, ORDERS), ("payments", payments, PAYMENTS))
        )
        self.joined = left.interval_join(right, on="id").between(*interval, uid="paid", **how)
        outputs = {MAIN: self.joined, ERRORS: self.joined.errors}
        if how.get("on_late") != "drop":
            outputs |= {LATE: self.joined.late_left, LATE_RIGHT: self.joined.late_right}
        self.sinks = {name: MemorySink() for name in outputs}
        for name, stream in outputs.items():
            stream.sink_to(self.sinks[name], uid=f"sink-{name}")

    def run(self, **how: Any) -> Any:
        return run_local(self.env, **how)

    def found(self, output: str) -> Counter[Any]:
        listed = self.sinks[output].to_pylist()
        if output == ERRORS:
            listed = [json.loads(letter["payload"]) for letter in listed]
        return bag(listed)

    def right(self, epochs: Iterable[LocalEpoch]) -> tuple[dict[str, Counter[Any]], IntervalOracle]:
        """What the oracle says of these epochs."""
        (node,) = [step for step in self.env.graph.nodes if isinstance(step, IntervalJoin)]
        oracle, said = IntervalOracle(node), {output: Counter[Any]() for output in OUTPUTS}
        for epoch in epochs:
            for phase in oracle.epoch(self._given(epoch)):
                for output, made in phase.items():
                    fields = [row["payload"] if output == ERRORS else row for _, row in made]
                    said[output] += bag(fields)
        return said, oracle

    def _given(self, epoch: LocalEpoch) -> StepEpoch:
        sides = [
            [row for row in mine if isinstance(row, dict)] for mine in (self.orders, self.payments)
        ]
        given = [
            SidedRow((row["at"] - EPOCH) // timedelta(microseconds=1), row, side)
            for side, uid in enumerate(("orders", "payments"))
            for start, end in epoch.ranges.get(uid, {}).values()
            for row in sides[side][start:end]
        ]
        marks = [
            min(known[uid] for uid in ("orders", "payments"))
            for known in (epoch.before, epoch.watermarks)
        ]
        return StepEpoch(marks[0], marks[1], given)


def bag(listed: Iterable[Mapping[str, Any]]) -> Counter[Any]:
    """Rows in whatever order; times of dead letters are texts, so they are left out."""
    return Counter(
        tuple(sorted((k, str(v)) for k, v in row.items() if not k.startswith("at")))
        for row in listed
    )


@pytest.mark.sampled
@pytest.mark.parametrize("disturbed", RUNS)
@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("interval", [(-3 * SECOND, 2 * SECOND), (SECOND, 6 * SECOND)])
def test_results_are_those_of_all_pairs(interval: Any, how: str, disturbed: Any) -> None:
    job = Job(rows(160, 1, "n"), rows(130, 2, "paid"), *interval, how=how)
    result = job.run(**disturbed)
    right, oracle = job.right(result.epochs)
    assert {output: job.found(output) for output in OUTPUTS} == right
    assert all(right[output] for output in (MAIN, LATE, LATE_RIGHT))
    counts = result.counts["paid"]
    lost = sum(right[output].total() for output in (LATE, LATE_RIGHT, ERRORS))
    assert counts["in"] == 290
    assert counts["held"] == 290 - lost
    assert (counts["late"], counts["late_right"]) == (
        right[LATE].total(),
        right[LATE_RIGHT].total(),
    )
    assert counts.get("dead", 0) == right[ERRORS].total()
    assert counts["out"] == right[MAIN].total()
    assert result.metrics.get("paid", {}).get("null_keys", 0) == oracle.null_keys


@pytest.mark.parametrize("how", ["inner", "full"])
def test_late_rows_that_are_dropped_are_counted(how: str) -> None:
    job = Job(rows(160, 1, "n"), rows(130, 2, "paid"), -SECOND, SECOND, how=how, on_late="drop")
    result = job.run(shards=2)
    right, _ = job.right(result.epochs)
    assert job.found(MAIN) == right[MAIN]
    counts = result.counts["paid"]
    assert (counts["late"], counts["late_right"]) == (
        right[LATE].total(),
        right[LATE_RIGHT].total(),
    )
    assert counts["late"] > 0 < counts["late_right"]


def timed(env: hr.Environment, listed: list[Any], schema: Any, uid: str) -> Any:
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    return env.from_source(MemorySource(listed, schema), watermarks=strategy, uid=uid)


@pytest.mark.parametrize("disturbed", RUNS)
def test_no_result_is_late_for_a_window_behind_the_join(disturbed: Any) -> None:
    env, out, late = hr.Environment("windows", epochs=hr.Epochs(rows=7)), MemorySink(), MemorySink()
    orders = [{"id": f"{n}", "n": n, "at": START + n * SECOND} for n in range(60)]
    payments = [
        {"id": f"{n}", "paid": n, "at": START + (n + 4) * SECOND} for n in range(60) if n % 3
    ]
    left, right = timed(env, orders, ORDERS, "orders"), timed(env, payments, PAYMENTS, "payments")
    joined = left.interval_join(right, on="id").between(
        0 * SECOND, 10 * SECOND, how="left", uid="paid"
    )
    counted = (
        joined.window_all(hr.windows.Tumbling(10 * SECOND))
        .aggregate(rows=hr.count(), paid=hr.count("paid"), uid="counted")
    )  # fmt: skip
    counted.sink_to(out, uid="out")
    counted.late.sink_to(late, uid="late")
    run_local(env, **disturbed)
    assert late.to_pylist() == []
    # A paid order stands where it was paid, one that was not where that was certain, ten seconds later.
    right_counts: Counter[Any] = Counter()
    for n in range(60):
        right_counts[(n + (4 if n % 3 else 10)) // 10, bool(n % 3)] += 1
    found = {
        (row["window_start"] - START) // (10 * SECOND): (row["rows"], row["paid"])
        for row in out.to_pylist()
    }
    assert found == {
        window: (
            right_counts[window, True] + right_counts[window, False],
            right_counts[window, True],
        )
        for window in {window for window, _ in right_counts}
    }


@pytest.mark.parametrize("disturbed", RUNS)
def test_results_of_windows_meet_before_the_next_tick(disturbed: Any) -> None:
    """Both inputs are released by the tick that would end their hope, and are judged by the watermark before."""
    env, out = hr.Environment("windows", epochs=hr.Epochs(rows=6)), MemorySink()
    window = hr.windows.Tumbling(5 * SECOND)
    sides = []
    for uid, schema in (("orders", ORDERS), ("payments", PAYMENTS)):
        listed = [
            {"id": "ab"[n % 2], list(schema)[1]: n, "at": START + n * SECOND} for n in range(60)
        ]
        keyed = timed(env, listed, schema, uid).key_by("id").window(window)
        sides.append(keyed.aggregate(n=hr.count(), uid=f"count-{uid}"))
    pair = sides[0].interval_join(sides[1], on="id")
    joined = pair.between(timedelta(0), timedelta(0), how="full", uid="same")
    joined.sink_to(out, uid="out")
    result = run_local(env, **disturbed)
    found = out.to_pylist()
    assert len(found) == 24
    assert all(row["window_start"] == row["window_start_right"] for row in found)
    assert result.counts["same"] == {"in": 48, "held": 48, "out": 24}


@pytest.mark.parametrize("disturbed", RUNS)
def test_a_stream_may_meet_itself(disturbed: Any) -> None:
    env, out = hr.Environment("itself", epochs=hr.Epochs(rows=5)), MemorySink()
    orders = [{"id": "ab"[n % 2], "n": n, "at": START + n * SECOND} for n in range(30)]
    stream = timed(env, orders, ORDERS, "orders")
    joined = stream.interval_join(stream, on="id").between(SECOND, 4 * SECOND, uid="later")
    joined.sink_to(out, uid="out")
    result = run_local(env, **disturbed)
    right = [(n, m) for n in range(30) for m in (n + 2, n + 4) if m < 30]
    assert sorted((row["n"], row["n_right"]) for row in out.to_pylist()) == right
    assert result.counts["later"] == {"in": 60, "held": 60, "out": len(right)}
