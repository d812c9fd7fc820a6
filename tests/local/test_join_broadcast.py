"""Broadcast joins in whole jobs: each row beside the table as it was in its epoch, whatever happens."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace._graph.join_nodes import BroadcastJoin
from headrace._graph.nodes import ERRORS, MAIN
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import LocalEpoch, cut, run_local
from headrace.testing.epochs import SidedRow, StepEpoch
from tests.oracle.joins.broadcast import BroadcastOracle

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ORDERS = {"country": str, "zone": float, "n": int, "at": datetime}
COUNTRIES = {"country": str, "zone": float, "name": str}
CHANGES = COUNTRIES | {"change": str}
KEYS = ["country", "zone"]
NAN = float("nan")

#: Ways to disturb a run; none may show.
RUNS: list[dict[str, Any]] = [
    {"shards": 1},
    {"shards": 3, "tasks": 2, "rescale": {2: 1, 4: 2}},
    {"shards": 2, "crashes": [(n, point) for n, point in enumerate(POINTS)], "rescale": {3: 3}},
]


def key(chance: random.Random) -> dict[str, Any]:
    country = None if chance.random() < 0.05 else chance.choice(["de", "fr", ""])
    return {"country": country, "zone": chance.choice([1.0, 0.0, -0.0, NAN])}


def orders(count: int, seed: int) -> list[Any]:
    chance, made = random.Random(seed), []
    for n in range(count):
        made.append(key(chance) | {"n": n, "at": START + n * SECOND})
        if chance.random() < 0.07:
            made.append(cut())
    return made


def countries(count: int, seed: int, *, changing: bool) -> list[Any]:
    chance, made = random.Random(seed), []
    for n in range(count):
        change = chance.choice(["+I", "+U", "-U", "-D"])
        made.append(key(chance) | {"name": f"{n}"} | ({"change": change} if changing else {}))
        if chance.random() < 0.2:
            made.append(cut())
    return made


class Job:
    """Orders beside countries."""

    def __init__(self, how: Any, *, changing: bool) -> None:
        self.rows = {"orders": orders(150, 1), "countries": countries(40, 2, changing=changing)}
        self.env = hr.Environment("countries", epochs=hr.Epochs(rows=20))
        strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
        stream = self.env.from_source(
            MemorySource(self.rows["orders"], ORDERS), watermarks=strategy, uid="orders"
        )
        source = MemorySource(self.rows["countries"], CHANGES if changing else COUNTRIES)
        source.carries_changes = changing
        table = self.env.from_source(source, uid="countries").broadcast()
        self.joined = stream.join(table, on=KEYS, how=how, uid="named")
        self.sinks = {MAIN: MemorySink(), ERRORS: MemorySink()}
        self.joined.sink_to(self.sinks[MAIN], uid="out")
        self.joined.errors.sink_to(self.sinks[ERRORS], uid="dead")

    def right(self, epochs: Iterable[LocalEpoch]) -> tuple[list[Any], int, BroadcastOracle]:
        """Results and the number of dead letters, as the oracle says."""
        (node,) = [step for step in self.env.graph.nodes if isinstance(step, BroadcastJoin)]
        oracle, results, dead = BroadcastOracle(node), [], 0
        for epoch in epochs:
            given = [
                SidedRow(1, row, side, (uid, "0", start + place))
                for side, uid in enumerate(("orders", "countries"))
                for start, end in epoch.ranges.get(uid, {}).values()
                for place, row in enumerate(_plain(self.rows[uid])[start:end])
            ]
            for said in oracle.epoch(StepEpoch(0, 0, given)):
                results += [row for _, row in said.get(MAIN, ())]
                dead += len(said.get(ERRORS, ()))
        return results, dead, oracle


def _plain(rows: list[Any]) -> list[dict[str, Any]]:
    return [row for row in rows if isinstance(row, dict)]


def bag(rows: Iterable[dict[str, Any]]) -> Counter[Any]:
    return Counter((row["n"], row["country"], str(row["zone"] + 0.0), row["name"]) for row in rows)


@pytest.mark.parametrize("disturbed", RUNS)
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("changing", [False, True])
def test_rows_stand_beside_the_table_of_their_epoch(
    changing: bool, how: str, disturbed: Any
) -> None:
    job = Job(how, changing=changing)
    result = run_local(job.env, **disturbed)
    results, dead, oracle = job.right(result.epochs)
    assert bag(job.sinks[MAIN].to_pylist()) == bag(results)
    assert len({row["name"] for row in results}) > 5, "the sample changes the table"
    assert len(job.sinks[ERRORS].to_pylist()) == dead > 0
    # An entry is counted once, however many shards have it.
    assert result.counts["named"] == {
        "in": 190, "held": 190 - dead, "dead": dead, "out": len(results),
    }  # fmt: skip
    assert result.metrics.get("named", {}).get("null_keys", 0) == oracle.null_keys


@pytest.mark.parametrize("disturbed", RUNS)
def test_a_table_without_event_time_holds_nothing_back(disturbed: Any) -> None:
    env, out = hr.Environment("timeless", epochs=hr.Epochs(rows=5)), MemorySink()
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    rows = [{"id": "ab"[n % 2], "n": n, "at": START + n * SECOND} for n in range(40)]
    stream = env.from_source(MemorySource(rows), watermarks=strategy, uid="rows")
    timeless = env.from_source(MemorySource([{"id": "a", "name": "x"}]), uid="table")
    joined = stream.join(timeless.broadcast(), on="id", how="left", uid="named")
    window = joined.key_by("id").window(hr.windows.Tumbling(10 * SECOND))
    window.aggregate(n=hr.count(), named=hr.count("name"), uid="counts").sink_to(out, uid="out")
    result = run_local(env, **disturbed)
    found = sorted((row["id"], row["n"], row["named"]) for row in out.to_pylist())
    assert found == [("a", 5, 5)] * 4 + [("b", 5, 0)] * 4
    assert result.counts["counts"].get("late", 0) == 0


@pytest.mark.parametrize("disturbed", RUNS)
def test_results_of_a_step_with_changes_are_a_table(disturbed: Any) -> None:
    """The counts of windows that may be corrected: what is withdrawn is replaced by what follows."""
    env, out = hr.Environment("counts", epochs=hr.Epochs(rows=10)), MemorySink()
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    rows = [{"id": "ab"[n % 2], "n": n, "at": START + n * SECOND} for n in range(40)]
    stream = env.from_source(MemorySource(rows), watermarks=strategy, uid="rows")
    last = stream.key_by("id").last(forever=True, uid="last").select("id", "change", newest="n")
    joined = stream.select("id", "n").join(last.broadcast(), on="id", how="left", uid="newest")
    joined.sink_to(out, uid="out")
    run_local(env, **disturbed)
    # What an epoch changes is behind a shuffle, and beside the rows of the same epoch.
    assert sorted((row["n"], row["newest"]) for row in out.to_pylist()) == [
        (n, n // 10 * 10 + 8 + n % 2) for n in range(40)
    ]


@pytest.mark.parametrize("disturbed", RUNS)
def test_a_stream_may_stand_beside_itself(disturbed: Any) -> None:
    env, out = hr.Environment("itself"), MemorySink()
    rows = [{"id": "ab"[n % 2], "n": n} for n in range(10)]
    stream = env.from_source(MemorySource(rows), uid="rows")
    joined = stream.join(stream.broadcast(), on="id", uid="newest")
    joined.sink_to(out, uid="out")
    result = run_local(env, **disturbed)
    assert sorted((row["n"], row["n_right"]) for row in out.to_pylist()) == [
        (n, 8 + n % 2) for n in range(10)
    ]
    assert result.counts["newest"] == {"in": 20, "held": 20, "out": 10}
