"""Two inputs, rules for every shard, a buffer and a rolling reduce in one job: on Spark as in this process."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SAID = {"key": str, "said": str}
NAMES = ("matched", "checked", "checked-all", "largest", "buffered")


class Match(hr.KeyedCoProcessFunction):
    """What is left of orders when payments are taken off, an hour after the last of either."""

    left: hr.state.Value[int]
    seen: hr.state.Map[str, int]

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        return self._add("orders", value.amount, ctx)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        return self._add("payments", -value.paid, ctx)

    def _add(self, what: str, amount: int, ctx: Any) -> Iterator[Any]:
        self.left.update((self.left.value() or 0) + amount)
        self.seen[what] = self.seen.get(what, 0) + 1
        ctx.timers.register_event_time(START + timedelta(hours=1))
        return iter(())

    def on_timer(self, timestamp: Any, ctx: Any) -> Iterator[Any]:
        yield {"key": ctx.key, "said": f"{self.left.value()} {self.seen.items()}"}
        self.left.clear()
        self.seen.clear()


def _met(rules: Any, amount: int) -> str:
    return ",".join(name for name, least in rules.items() if amount >= least)


class Check(hr.KeyedBroadcastProcessFunction):
    rules: hr.state.Broadcast[str, int]
    seen: hr.state.Value[int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.seen.update((self.seen.value() or 0) + 1)
        yield {"key": ctx.key, "said": f"{_met(self.rules, value.amount)} {self.seen.value()}"}

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.metrics.counter("rules").inc()
        self.rules[value.name] = value.least
        yield {"key": value.name, "said": "rule"}


class CheckAll(hr.BroadcastProcessFunction):
    rules: hr.state.Broadcast[str, int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield {"key": value.id, "said": _met(self.rules, value.amount)}

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.rules[value.name] = value.least
        yield {"key": value.name, "said": "rule"}


class Buffer(hr.ProcessFunction):
    """Lets every row wait until ten are there."""

    waiting: hr.state.OperatorList[str]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.waiting.add(value.id)
        if len(ids := self.waiting.get()) == 10:
            self.waiting.clear()
            yield from ({"key": name, "said": "sent"} for name in ids)


def build(root: Path) -> tuple[hr.Environment, dict[str, MemorySink]]:
    env = hr.Environment(
        "connected", checkpoint=root / "state", epochs=hr.Epochs(rows=200), shards=2
    )
    bound = hr.WatermarkStrategy.bounded_out_of_orderness(SECOND).with_timestamps("at")

    def timed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {"at": START + n * SECOND} for n, row in enumerate(rows)]

    ordered = timed([{"id": f"k{n % 37}", "amount": n % 101} for n in range(600)])
    paid = timed([{"order": f"k{n % 41}", "paid": n % 13} for n in range(600)])
    orders = env.from_source(MemorySource(ordered), watermarks=bound, uid="orders")
    payments = env.from_source(
        MemorySource(partitions=[paid[::2], paid[1::2]]), watermarks=bound, uid="payments"
    )
    said = [{"name": name, "least": least} for name, least in [("b", 50), ("a", 20), ("b", 90)]]
    rules = env.from_source(MemorySource(said), uid="rules").broadcast()
    keyed = orders.key_by("id")
    made: dict[str, Any] = {
        "matched": keyed.connect(payments.key_by("order")).process(
            Match(), schema=SAID, uid="match"
        ),
        "checked": keyed.connect(rules).process(Check(), schema=SAID, uid="check"),
        "checked-all": orders.connect(rules).process(CheckAll(), schema=SAID, uid="check-all"),
        "largest": keyed.reduce(
            lambda a, b: b if b.amount > a.amount else a, forever=True, uid="reduce"
        ),
        "buffered": orders.process(Buffer(), schema=SAID, uid="buffer"),
    }
    sinks = {name: MemorySink() for name in NAMES}
    for name, stream in made.items():
        stream.sink_to(sinks[name], uid=name)
    return env, sinks


def bag(sink: MemorySink) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in sink.to_pylist())


def test_what_two_inputs_make_is_the_same_on_spark_and_in_this_process(tmp_path: Path) -> None:
    env, there = build(tmp_path)
    job = env.start()
    assert job.wait(timeout=300).finished
    quiet, here = build(tmp_path)
    result = run_local(quiet, shards=3, tasks=2)
    for name in ("matched", "checked", "checked-all", "largest"):
        assert bag(there[name]), name
        assert bag(there[name]) == bag(here[name]), name
    assert bag(there["checked"])["a", "rule"] == 1
    assert job.metrics["check"]["rules"] == result.metrics["check"]["rules"] == 3
    # Which shard holds which row depends on the number of shards: here two and there three may keep nine each.
    kept = hr.read_state(tmp_path / "state", "buffer", "waiting").column("value").to_pylist()
    everything = bag(here["buffered"]) + Counter(
        (row["value"], "sent") for row in result.read_state("buffer", "waiting").to_pylist()
    )
    assert bag(there["buffered"]) + Counter((name, "sent") for name in kept) == everything
    assert sum(everything.values()) == 600
