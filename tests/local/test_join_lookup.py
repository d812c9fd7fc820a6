"""Look-up joins in whole jobs: crashes, counts, dead letters, tables that change meanwhile."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError
from headrace.lookups import Cache, FileTable, LookupFunction
from headrace.testing import run_local

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CRASHES: Any = [(0, "staged"), (1, "task"), (2, "durable"), (3, "published")]


@dataclass
class Order:
    id: int
    customer: int | None
    at: datetime


@dataclass
class Customer:
    name: str
    level: int


class Customers(LookupFunction[int, Customer]):
    """Every third customer is unknown, and 13 cannot be told."""

    schema = Customer
    cache = Cache(size=100)

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def fetch(self, keys: Sequence[int]) -> Mapping[int, Customer]:
        self.asked.extend(keys)
        await asyncio.sleep(0)
        if 13 in keys:
            raise ValueError("13 is not to be told")
        return {key: Customer(f"c{key}", key % 2) for key in keys if key % 3}


def orders(count: int, epoch_rows: int) -> tuple[hr.Environment, Any]:
    env = hr.Environment("orders", epochs=hr.Epochs(rows=epoch_rows))
    rows = [Order(n, None if n % 10 == 9 else n % 20, START + n * SECOND) for n in range(count)]
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    return env, env.from_source(MemorySource(rows), watermarks=strategy, uid="orders")


def test_every_row_comes_out_once_is_filtered_or_is_a_dead_letter() -> None:
    env, stream = orders(200, epoch_rows=50)
    joined = stream.join_lookup(
        Customers(), on="customer", how="inner", on_error="dead_letter", uid="join"
    )
    kept, dead = MemorySink(), MemorySink()
    joined.sink_to(kept, uid="kept")
    joined.errors.sink_to(dead, uid="dead")
    result = run_local(env, tasks=2, crashes=CRASHES)
    assert result.restarts == 4
    places = [n for n in range(200) if n % 10 != 9 and n % 20 != 13 and n % 20 % 3]
    found = sorted(kept.to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["name"]) for row in found] == [(n, f"c{n % 20}") for n in places]
    letters = {row["offset"]: row["cause"] for row in dead.to_pylist()}
    nulls = dict.fromkeys(range(9, 200, 10), "null key 'customer'")
    assert letters == nulls | dict.fromkeys(range(13, 200, 20), "ValueError: 13 is not to be told")
    assert result.counts["join"] == {"in": 200, "out": len(places), "filtered": 60, "dead": 30}


def test_null_keys_of_a_left_join_are_padded_and_counted() -> None:
    env, stream = orders(20, epoch_rows=10)
    sink = MemorySink()
    table = {n: Customer(f"c{n}", 0) for n in range(1, 9)}

    def find(keys: list[int]) -> dict[int, Customer]:
        return {key: table[key] for key in keys if key in table}

    stream.join_lookup(find, on="customer", uid="join").sink_to(sink, uid="out")
    result = run_local(env, crashes=[(1, "staged")])
    assert [row["name"] for row in sink.to_pylist()[:10]] == [
        None,
        *(f"c{n}" for n in range(1, 9)),
        None,
    ]
    assert result.metrics["join"] == {"null_keys": 2}
    assert result.counts["join"] == {"in": 20, "out": 20}


def test_rows_of_a_file_multiply_and_time_goes_on_to_windows(tmp_path: Path) -> None:
    path = tmp_path / "tags.parquet"
    pq.write_table(pa.table({"id": [1, 1, 2], "tag": ["a", "b", "a"]}), path)
    env, stream = orders(40, epoch_rows=10)
    sink = MemorySink()
    tags = FileTable(path, key="id", columns=["tag"])
    joined = stream.join_lookup(tags, on="customer", how="inner", uid="join")
    window = joined.key_by("tag").window(hr.windows.Tumbling(20 * SECOND))
    window.aggregate(rows=hr.count(), uid="counts").sink_to(sink, uid="out")
    result = run_local(env, tasks=2, crashes=CRASHES)
    found = sorted((row["window_start"], row["tag"], row["rows"]) for row in sink.to_pylist())
    assert found == [
        (START + n * SECOND, tag, rows) for n in (0, 20) for tag, rows in (("a", 2), ("b", 1))
    ]
    assert result.counts["join"] == {"in": 40, "out": 6, "filtered": 32, "dead": 4}


def test_a_file_that_changes_while_the_job_runs_is_read_again(tmp_path: Path) -> None:
    path, late = tmp_path / "names.csv", tmp_path / "names.new"
    path.write_text("id,name\n0,old\n")
    late.write_text("id,name\n0,new\n")

    def changed(row: Any) -> Any:
        if row.id == 10:
            late.rename(path)
        return row

    rows = [{"id": n, "customer": 0} for n in range(30)]
    env = hr.Environment("changing", epochs=hr.Epochs(rows=1))
    stream = env.from_source(MemorySource(rows), uid="orders")
    names = FileTable(path, key="id", columns=["name"], check_every=timedelta(microseconds=1))
    sink = MemorySink()
    stream.map(changed, schema=stream.schema).join_lookup(names, on="customer").sink_to(sink)
    run_local(env)
    assert [row["name"] for row in sink.to_pylist()] == ["old"] * 10 + ["new"] * 20


def test_a_failure_fails_the_job_by_name() -> None:
    env, stream = orders(20, epoch_rows=20)
    stream.join_lookup(Customers(), on="customer", uid="join").sink_to(MemorySink(), uid="out")
    with pytest.raises(UserCodeError, match="step 'join' raised ValueError: 13"):
        run_local(env)


def test_keys_are_asked_for_once_and_then_kept() -> None:
    rows = [{"id": n, "customer": n % 7} for n in range(100)]
    env = hr.Environment("kept", epochs=hr.Epochs(rows=25))
    table, sink = Customers(), MemorySink()
    stream = env.from_source(MemorySource(rows), uid="orders")
    stream.join_lookup(table, on="customer", uid="join").sink_to(sink, uid="out")
    run_local(env)
    assert sorted(table.asked) == list(range(7))
    assert sink.to_pylist()[8] == {"id": 8, "customer": 1, "name": "c1", "level": 1}
