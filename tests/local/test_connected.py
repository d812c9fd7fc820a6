"""Jobs with two inputs, broadcast rules, operator state and a rolling reduce: every row once, whatever happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError
from headrace.testing import cut, run_local

START = datetime(2025, 1, 1, tzinfo=UTC)
ORDERS = {"id": str, "amount": int, "at": datetime}
PAYMENTS = {"order": str, "paid": int, "at": datetime}
RULES = {"name": str, "least": int}
SECOND = timedelta(seconds=1)

#: Ways to disturb a run; none may show.
CALM: dict[str, Any] = {"shards": 1}
RUNS: list[dict[str, Any]] = [
    {"shards": 3, "tasks": 2},
    {"shards": 2, "rescale": {2: 3, 4: 1}},
    {"shards": 2, "crashes": [(1, "staged"), (2, "durable"), (3, "task")]},
    {"shards": 3, "crashes": [(n, point) for n, point in enumerate(POINTS)], "rescale": {3: 2}},
]


def timed(uid: str, env: hr.Environment, rows: list[Any], schema: Any) -> Any:
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(SECOND).with_timestamps("at")
    return env.from_source(MemorySource(rows, schema), watermarks=strategy, uid=uid)


def order(number: int, key: str, amount: int) -> dict[str, Any]:
    return {"id": key, "amount": amount, "at": START + number * SECOND}


def payment(number: int, key: str, paid: int) -> dict[str, Any]:
    return {"order": key, "paid": paid, "at": START + number * SECOND}


class Match(hr.KeyedCoProcessFunction):
    """Says when an order is paid, and after ten seconds that it is not."""

    due: hr.state.Value[int]

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        return self._add(value.amount, ctx)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        return self._add(-value.paid, ctx)

    def _add(self, amount: int, ctx: Any) -> Iterator[Any]:
        left = (self.due.value() or 0) + amount
        ctx.timers.register_event_time(ctx.timestamp + 10 * SECOND)
        self.due.update(left)
        if left == 0:
            yield {"id": ctx.key, "said": "paid"}

    def on_timer(self, timestamp: Any, ctx: Any) -> Iterator[Any]:
        if self.due.value():
            yield {"id": ctx.key, "said": f"{self.due.value()} left"}
        self.due.clear()


def match(**how: Any) -> tuple[list[Any], Any]:
    env, sink = hr.Environment("orders", epochs=hr.Epochs(rows=4)), MemorySink()
    keys = "abcdefgh"
    orders = [order(n, key, 10 + n) for n, key in enumerate(keys)]
    payments = [payment(n + 1, key, 10 + n - (key in "cf")) for n, key in enumerate(keys)]
    pair = timed("orders", env, orders, ORDERS).connect(timed("payments", env, payments, PAYMENTS))
    said = pair.key_by("id", "order").process(Match(), schema={"id": str, "said": str}, uid="match")
    said.sink_to(sink, uid="out")
    result = run_local(env, **how)
    return sorted((row["id"], row["said"]) for row in sink.to_pylist()), result


@pytest.mark.parametrize("how", [CALM, *RUNS])
def test_two_streams_share_state_and_timers(how: Any) -> None:
    found, result = match(**how)
    assert found == [(key, "paid" if key not in "cf" else "1 left") for key in "abcdefgh"]
    assert result.counts["match"] == {"in": 16, "held": 16, "out": 8}


class Large(hr.KeyedBroadcastProcessFunction):
    """Says which rules a row meets, and how many rows of its key did."""

    rules: hr.state.Broadcast[str, int]
    met: hr.state.Value[int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        names = [name for name, least in self.rules.items() if value.amount >= least]
        if names:
            self.met.update((self.met.value() or 0) + 1)
            yield {"id": value.id, "said": f"{value.amount} {names} {self.met.value()}"}

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.metrics.counter("rules").inc()
        self.rules[value.name] = value.least
        yield {"id": "", "said": f"{value.name} {value.least}"}


def rules(function: Any, *, keyed: bool, **how: Any) -> tuple[list[Any], Any]:
    env, sink = hr.Environment("rules", epochs=hr.Epochs(rows=100)), MemorySink()
    orders: list[Any] = []
    for n in range(24):
        orders += [order(n, "abc"[n % 3], n), *([cut()] if n % 6 == 5 else [])]
    said = [
        {"name": "large", "least": 12}, cut(), {"name": "huge", "least": 20},
        {"name": "large", "least": 3}, cut(), {"name": "all", "least": 0},
    ]  # fmt: skip
    stream = timed("orders", env, orders, ORDERS)
    beside = env.from_source(MemorySource(said, RULES), uid="rules").broadcast()
    pair = stream.key_by("id").connect(beside) if keyed else stream.connect(beside)
    result = pair.process(function, schema={"id": str, "said": str}, uid="check")
    result.sink_to(sink, uid="out")
    ran = run_local(env, **how)
    return sorted((row["id"], row["said"]) for row in sink.to_pylist()), ran


def expected_rules(*, counted: bool) -> list[Any]:
    """A plain model: in every epoch first the rules, then the rows."""
    known: dict[str, int] = {}
    met: Counter[str] = Counter()
    said = []
    changes = [[("large", 12)], [("huge", 20), ("large", 3)], [("all", 0)], []]
    for epoch, changed in enumerate(changes):
        known.update(changed)
        said += [("", f"{name} {least}") for name, least in changed]
        for n in range(6 * epoch, 6 * epoch + 6):
            names = sorted(name for name, least in known.items() if n >= least)
            if names:
                key = "abc"[n % 3]
                met[key] += 1
                said.append((key, f"{n} {names}" + (f" {met[key]}" if counted else "")))
    return sorted(said)


@pytest.mark.parametrize("how", [CALM, *RUNS])
def test_rules_reach_every_shard_and_count_once(how: Any) -> None:
    found, result = rules(Large(), keyed=True, **how)
    right = expected_rules(counted=True)
    assert found == right
    assert result.counts["check"] == {"in": 28, "held": 28, "out": len(right)}
    assert result.metrics["check"]["rules"] == 4


def test_what_timeless_rules_say_has_the_time_of_the_clock_and_leaves_the_rest_its_own() -> None:
    env, sink = hr.Environment("windows", epochs=hr.Epochs(rows=100)), MemorySink()
    stream = timed("orders", env, [order(n, "a", 50) for n in range(20)], ORDERS)
    rules = env.from_source(MemorySource([{"name": "r", "least": 1}], RULES), uid="rules")
    checked = stream.key_by("id").connect(rules.broadcast())
    said = checked.process(Large(), schema={"id": str, "said": str}, uid="check")
    windowed = said.key_by("id").window(hr.windows.Tumbling(10 * SECOND))
    windowed.aggregate(n=hr.count(), uid="counts").sink_to(sink, uid="out")
    result = run_local(env, shards=2)
    found = {(row["id"], row["window_start"]): row["n"] for row in sink.to_pylist()}
    clock = datetime.fromtimestamp(result.epochs[0].clock_us // 1_000_000 // 10 * 10, UTC)
    assert found == {("a", START): 10, ("a", START + 10 * SECOND): 10, ("", clock): 1}


class LargeOfAll(hr.BroadcastProcessFunction):
    rules: hr.state.Broadcast[str, int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        names = [name for name, least in self.rules.items() if value.amount >= least]
        if names:
            yield {"id": value.id, "said": f"{value.amount} {names}"}

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.rules[value.name] = value.least
        yield {"id": "", "said": f"{value.name} {value.least}"}


@pytest.mark.parametrize("how", [CALM, *RUNS])
def test_rows_without_keys_see_the_rules_too(how: Any) -> None:
    found, result = rules(LargeOfAll(), keyed=False, **how)
    right = expected_rules(counted=False)
    assert found == right
    assert result.counts["check"] == {"in": 28, "held": 28, "out": len(right)}


class Beside(hr.KeyedBroadcastProcessFunction):
    """Says how many orders each key had in the windows so far."""

    counts: hr.state.Broadcast[str, int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield {"id": value.order, "said": f"{value.paid} {self.counts.items()}"}

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        self.counts[value.id] = self.counts.get(value.id, 0) + value.n


@pytest.mark.parametrize("how", [CALM, *RUNS])
def test_results_of_windows_are_broadcast_before_the_next_tick(how: Any) -> None:
    env, sink = hr.Environment("windows", epochs=hr.Epochs(rows=100)), MemorySink()
    orders: list[Any] = []
    payments: list[Any] = []
    for n in range(40):
        orders += [order(n, "abcd"[n % 4], n), *([cut()] if n % 10 == 9 else [])]
        payments += [payment(n, "xyz"[n % 3], n), *([cut()] if n % 10 == 9 else [])]
    window = hr.windows.Tumbling(8 * SECOND)
    counts = (
        timed("orders", env, orders, ORDERS)
        .key_by("id")
        .window(window)
        .aggregate(n=hr.count(), uid="counts")
    )
    pair = timed("payments", env, payments, PAYMENTS).key_by("order").connect(counts.broadcast())
    said = pair.process(Beside(), schema={"id": str, "said": str}, uid="beside")
    said.sink_to(sink, uid="out")
    result = run_local(env, **how)
    # The epochs have ten rows of each; windows that end by the watermark before are known to them.
    right = []
    for n in range(40):
        fired = max(0, n // 10 * 10 - 2 + 1) // 8 if n >= 10 else 0
        shown = [(key, 2 * fired) for key in "abcd"] if fired else []
        right.append(("xyz"[n % 3], f"{n} {shown}"))
    assert sorted((row["id"], row["said"]) for row in sink.to_pylist()) == sorted(right)
    assert result.counts["beside"]["in"] == 40 + result.counts["counts"]["out"]


def test_neither_input_needs_event_time() -> None:
    env, sink = hr.Environment("timeless"), MemorySink()
    rows = env.from_source(MemorySource([{"id": "a", "amount": 7}], {"id": str, "amount": int}))
    rules = env.from_source(MemorySource([{"name": "r", "least": 1}], RULES))
    pair = rows.key_by("id").connect(rules.broadcast())
    said = pair.process(Large(), schema={"id": str, "said": str}, uid="check")
    said.sink_to(sink, uid="out")
    run_local(env, shards=2)
    assert sorted(row["said"] for row in sink.to_pylist()) == ["7 ['r'] 1", "r 1"]


class Merge(hr.CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield {"id": value.id, "said": "order"}

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield {"id": value.order, "said": "payment"}


def test_two_streams_without_keys() -> None:
    env, sink = hr.Environment("merge", epochs=hr.Epochs(rows=2)), MemorySink()
    orders = timed("orders", env, [order(0, "a", 1), order(1, "b", 2)], ORDERS)
    payments = timed("payments", env, [payment(0, "a", 1)], PAYMENTS)
    merged = orders.connect(payments).process(Merge(), schema={"id": str, "said": str}, uid="merge")
    merged.sink_to(sink, uid="out")
    result = run_local(env)
    found = sorted((row["id"], row["said"]) for row in sink.to_pylist())
    assert found == [("a", "order"), ("a", "payment"), ("b", "order")]
    assert result.counts["merge"] == {"in": 3, "out": 3}


class Others(hr.KeyedBroadcastProcessFunction):
    """Says how many rows there are of all keys."""

    seen: hr.state.Broadcast[str, int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield {"id": value.id, "said": f"{self.seen.items()}"}

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        self.seen[value.id] = self.seen.get(value.id, 0) + 1


def test_a_stream_may_be_beside_itself() -> None:
    env, sink = hr.Environment("itself"), MemorySink()
    orders = timed("orders", env, [order(n, "aab"[n], n) for n in range(3)], ORDERS)
    said = orders.key_by("id").connect(orders.broadcast())
    said.process(Others(), schema={"id": str, "said": str}, uid="others").sink_to(sink, uid="out")
    result = run_local(env, shards=3)
    found = sorted((row["id"], row["said"]) for row in sink.to_pylist())
    assert found == [(key, "[('a', 2), ('b', 1)]") for key in "aab"]
    assert result.counts["others"] == {"in": 6, "held": 6, "out": 3}


class Pairs(hr.ProcessFunction):
    """Sends rows out two at a time."""

    waiting: hr.state.OperatorList[str]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.waiting.add(value.id)
        if len(found := self.waiting.get()) >= 2:
            self.waiting.clear()
            yield {"ids": found}


@pytest.mark.parametrize("how", [CALM, *RUNS])
def test_a_buffer_loses_nothing_and_doubles_nothing(how: Any) -> None:
    env, sink = hr.Environment("pairs", epochs=hr.Epochs(rows=5)), MemorySink()
    orders = timed("orders", env, [order(n, f"{n:02}", n) for n in range(30)], ORDERS)
    orders.process(Pairs(), schema={"ids": list[str]}, uid="pairs").sink_to(sink, uid="out")
    result = run_local(env, **how)
    sent = [name for row in sink.to_pylist() for name in row["ids"]]
    kept = [row["value"] for row in result.read_state("pairs", "waiting").to_pylist()]
    assert sorted(sent + kept) == [f"{n:02}" for n in range(30)]
    assert len(kept) <= 3
    assert result.counts["pairs"] == {"in": 30, "held": 30, "out": len(sent) // 2}


@pytest.mark.parametrize("how", [CALM, *RUNS])
def test_a_rolling_reduce_says_what_it_has_so_far(how: Any) -> None:
    env, sink, dead = hr.Environment("reduce", epochs=hr.Epochs(rows=4)), MemorySink(), MemorySink()
    rows = [order(n, "ab"[n % 2], n) for n in range(12)]
    rows.insert(5, {"id": None, "amount": 1, "at": START})
    keyed = timed("orders", env, rows, ORDERS).key_by("id")
    totals = keyed.reduce(
        lambda a, b: {"id": a.id, "amount": a.amount + b.amount, "at": b.at},
        forever=True,
        uid="totals",
    )
    totals.sink_to(sink, uid="out")
    totals.errors.sink_to(dead, uid="dead")
    run_local(env, **how)
    right, so_far = [], Counter[str]()
    for row in rows:
        if row["id"] is not None:
            so_far[row["id"]] += row["amount"]
            right.append(row | {"amount": so_far[row["id"]]})
    assert sorted(sink.to_pylist(), key=repr) == sorted(right, key=repr)
    assert [row["cause"] for row in dead.to_pylist()] == ["null key 'id'"]


def test_a_reduce_that_returns_something_else_is_told_so() -> None:
    env = hr.Environment("reduce")
    keyed = timed("orders", env, [order(0, "a", 1), order(1, "a", 1)], ORDERS).key_by("id")
    keyed.reduce(lambda a, b: a.amount + b.amount, forever=True, uid="sums").sink_to(
        MemorySink(), uid="out"
    )
    with pytest.raises(UserCodeError, match="'sums'"):
        run_local(env)
