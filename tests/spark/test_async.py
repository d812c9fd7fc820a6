"""Coroutine functions in Spark's workers, asking a server in this process that is slow, fails and recovers."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors import generator
from headrace.connectors.memory import MemorySink
from tests.runtime.slow_server import Client, SlowServer, ask

#: Epochs large enough for two tasks.
ROWS, EPOCH_ROWS = 80_000, 40_000
CAPACITY = 10
SCHEMA = pa.schema({"id": pa.int64()})


class Pricing(Client):
    """Asks for one row in five hundred, so that the server is not what the test waits for."""

    async def __call__(self, row: Any) -> int:
        answers = {7: "?fails=99", 8: "?fails=1", 9: "?ms=60000&slow=1"}
        if row.id % 20_000 in answers:
            return await ask(self.port, f"/{row.id}{answers[row.id % 20_000]}")
        if row.id % 500 == 0:
            return await super().__call__(row)
        return int(row.id) * 10


@pytest.fixture
def server() -> Iterator[SlowServer]:
    with SlowServer() as running:
        yield running


def numbers(start: int, end: int) -> pa.RecordBatch:
    return pa.record_batch([np.arange(start, end, dtype=np.int64)], SCHEMA)


def orders(root: Path, rows: int, **options: Any) -> tuple[hr.Environment, hr.Stream]:
    env = hr.Environment("async", checkpoint=root / "state", shards=2, **options)
    return env, env.from_source(generator.Function(SCHEMA, numbers, rows=rows), uid="orders")


def test_rows_are_answered_late_again_or_never_and_connections_stay(
    tmp_path: Path, server: SlowServer
) -> None:
    env, stream = orders(tmp_path, ROWS, epochs=hr.Epochs(rows=EPOCH_ROWS))
    priced = stream.map_async(
        Pricing(server.port),
        capacity=CAPACITY,
        timeout=timedelta(seconds=4),
        retry=hr.Retry(attempts=3),
        on_error="dead_letter",
        uid="price",
    )
    kept, dead = MemorySink(), MemorySink()
    priced.sink_to(kept, uid="kept")
    priced.errors.sink_to(dead, uid="dead")
    assert env.execute().finished
    lost = range(7, ROWS, 20_000)
    found = sorted(row["value"] for row in kept.to_pylist())
    assert found == [10 * n for n in range(ROWS) if n not in lost]
    letters = sorted(dead.to_pylist(), key=lambda row: row["offset"])
    assert [row["offset"] for row in letters] == list(lost)
    assert all("503" in row["cause"] and "in ask" in row["traceback"] for row in letters)
    # Two tasks at a time; and the server may learn a little late that a row was given up.
    assert server.most <= 2 * CAPACITY + len(lost)
    # A machine that stands still for a while makes more time-outs, but not many times as many.
    assert server.asked >= ROWS // 500 + 3 * 2 * len(lost)
    assert server.connections < server.asked / 2


def test_an_error_starts_the_job_again_and_gives_every_result_once(
    tmp_path: Path, server: SlowServer
) -> None:
    async def price(row: Any) -> int:
        return await ask(server_port, f"/{row.id}?fails={int(row.id == 13)}")

    server_port = server.port
    soon = hr.Restart.fixed(timedelta(0), attempts=2)
    env, stream = orders(tmp_path, 30, epochs=hr.Epochs(rows=10), restart=soon)
    sink = MemorySink()
    stream.map_async(price, uid="price").sink_to(sink, uid="out")
    assert env.execute().finished
    assert [row["value"] for row in sink.to_pylist()] == list(range(0, 300, 10))
    assert server.requests["/13"] == 2
    assert server.requests["/5"] == 1
