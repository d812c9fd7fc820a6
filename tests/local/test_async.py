"""Coroutine functions in whole jobs: crashes, counts, dead letters."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local
from tests.runtime.slow_server import Client, SlowServer, ask

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SOON = hr.Retry(attempts=2, delay=timedelta(milliseconds=1))


@dataclass
class Order:
    id: int
    at: datetime


@dataclass
class Priced:
    id: int
    price: int


@pytest.fixture
def server() -> Iterator[SlowServer]:
    with SlowServer() as running:
        yield running


def orders(count: int, epoch_rows: int) -> tuple[hr.Environment, Any]:
    env = hr.Environment("orders", epochs=hr.Epochs(rows=epoch_rows))
    source = MemorySource([Order(n, START + n * SECOND) for n in range(count)])
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    return env, env.from_source(source, watermarks=strategy, uid="orders")


@pytest.mark.parametrize("ordered", [True, False])
def test_crashes_repeat_calls_and_no_result(server: SlowServer, ordered: bool) -> None:
    async def price(row: Any) -> Priced:
        return Priced(row.id, await ask(server.port, f"/{row.id}"))

    env, stream = orders(40, epoch_rows=10)
    sink = MemorySink()
    stream.map_async(price, capacity=4, ordered=ordered, uid="price").sink_to(sink, uid="out")
    crashes = [(0, "staged"), (1, "task"), (2, "durable"), (3, "published")]
    result = run_local(env, tasks=2, crashes=crashes)
    assert result.restarts == 4
    found = sorted(sink.to_pylist(), key=lambda row: row["id"])
    assert found == [{"id": n, "price": 10 * n} for n in range(40)]
    assert result.counts["price"] == {"in": 40, "out": 40}
    again = sorted(int(path[1:]) for path, asked in server.requests.items() if asked > 1)
    # Epoch 0 is run a second time as a whole, and of epoch 1 the task that was done.
    assert again == [*range(10), *range(10, 15)]


def test_every_row_is_a_result_or_a_dead_letter(server: SlowServer) -> None:
    async def price(row: Any) -> Priced:
        broken = "?fails=9" if row.id % 5 == 0 else "?fails=1" if row.id % 5 == 1 else ""
        return Priced(row.id, await ask(server.port, f"/{row.id}{broken}"))

    env, stream = orders(30, epoch_rows=10)
    kept, dead = MemorySink(), MemorySink()
    priced = stream.map_async(price, retry=SOON, on_error="dead_letter", uid="price")
    priced.sink_to(kept, uid="kept")
    priced.errors.sink_to(dead, uid="dead")
    result = run_local(env, crashes=[(1, "staged")])
    assert [row["id"] for row in kept.to_pylist()] == [n for n in range(30) if n % 5]
    assert [row["offset"] for row in dead.to_pylist()] == list(range(0, 30, 5))
    assert result.counts["price"] == {"in": 30, "out": 24, "dead": 6}


def test_timestamps_go_on_to_windows(server: SlowServer) -> None:
    async def price(row: Any) -> Priced:
        return Priced(row.id, await ask(server.port, f"/{row.id}?ms={row.id % 7}"))

    env, stream = orders(40, epoch_rows=20)
    sink = MemorySink()
    window = stream.map_async(price, ordered=False).window_all(hr.windows.Tumbling(10 * SECOND))
    window.aggregate(total=hr.sum("price"), uid="totals").sink_to(sink, uid="out")
    run_local(env)
    found = {row["window_start"]: row["total"] for row in sink.to_pylist()}
    wanted = {START + 10 * n * SECOND: sum(range(100 * n, 100 * (n + 1), 10)) for n in range(4)}
    assert found == wanted


def test_a_client_lives_through_epochs_and_is_closed_at_the_end(server: SlowServer) -> None:
    client = Client(server.port)
    env, stream = orders(40, epoch_rows=10)
    sink = MemorySink()
    stream.map_async(client, capacity=3, uid="price").sink_to(sink, uid="out")
    run_local(env)
    assert [row["value"] for row in sink.to_pylist()] == list(range(0, 400, 10))
    assert client.log == ["open", "close"]
    assert server.connections == 3


def test_a_job_that_fails_is_tried_again_from_its_last_epoch(server: SlowServer) -> None:
    async def price(row: Any) -> Priced:
        return Priced(row.id, await ask(server.port, f"/{row.id}?fails={int(row.id == 15)}"))

    env, stream = orders(20, epoch_rows=10)
    sink = MemorySink()
    stream.map_async(price, uid="price").sink_to(sink, uid="out")
    assert run_local(env).restarts == 1
    assert [row["price"] for row in sink.to_pylist()] == list(range(0, 200, 10))
