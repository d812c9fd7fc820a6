"""Rows move to other shards, and nothing else happens to them."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace._graph import nodes
from headrace._local.job import POINTS
from headrace._runtime.operator import HASH
from headrace._runtime.repartition import RepartitionFeeder, RepartitionOperator
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.wire import decode_rows, encode_rows, split_by_shard
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError
from headrace.keys import key_groups
from headrace.testing import run_local
from tests.examples import examples

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NUMBER = pa.schema([("n", pa.int64())])


def groups(rows: Rows, **said: Any) -> list[int]:
    node = nodes.Repartition(id=1, uid="it", inputs=(), schema=NUMBER, **said)
    feeder = RepartitionFeeder(node)
    assert list(feeder.feed(rows, 0)) == []
    [batch] = feeder.flush()
    assert list(feeder.flush()) == []
    return key_groups(batch.column(HASH).to_numpy()).tolist()


def numbers(count: int, offsets: Any = None) -> Rows:
    batch = pa.RecordBatch.from_pydict({"n": range(count)}, schema=NUMBER)
    origin = None if offsets is None else Origin("in", "p0", np.asarray(offsets, np.int64))
    return Rows(batch, None, origin)


def test_rows_behind_a_shuffle_are_dealt_out_in_turn() -> None:
    assert set(Counter(groups(numbers(1_280))).values()) == {10}
    halves = Counter(group // 64 for group in groups(numbers(10)))
    assert abs(halves[0] - halves[1]) <= 2


def test_rows_of_a_source_go_by_their_offset() -> None:
    found = groups(numbers(10_000, np.arange(10_000)))
    assert max(Counter(found).values()) < 2 * 10_000 / 128
    # The same rows, read in two parts.
    parts = groups(numbers(6_000, np.arange(6_000)))
    assert parts + groups(numbers(4_000, np.arange(6_000, 10_000))) == found


def test_rows_made_of_one_row_are_dealt_out_too() -> None:
    assert len(set(groups(numbers(5_000, np.zeros(5_000))))) == 128


def job(rows: list[Any], move: Any, epoch: int = 7) -> tuple[hr.Environment, MemorySink]:
    env, sink = hr.Environment("moved", epochs=hr.Epochs(rows=epoch)), MemorySink()
    made = [{"n": n, "at": START + place * SECOND} for place, n in enumerate(rows)]
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    schema = {"n": int | None, "at": datetime}
    moved = move(env.from_source(MemorySource(made, schema), watermarks=strategy, uid="in"))
    moved.process(
        lambda row, ctx: [{"n": row.n, "shard": ctx.shard, "on_time": ctx.timestamp == row.at}],
        schema={"n": int | None, "shard": int, "on_time": bool},
        uid="told",
    ).sink_to(sink, uid="out")
    return env, sink


@given(
    rows=st.lists(st.none() | st.integers(-5, 5), max_size=40),
    epoch=st.integers(1, 15),
    shards=st.integers(1, 4),
    tasks=st.integers(1, 3),
)
@examples(15)
def test_all_rows_arrive_once_with_their_time(
    rows: list[Any], epoch: int, shards: int, tasks: int
) -> None:
    env, sink = job(rows, lambda s: s.rebalance(uid="it"), epoch)
    counts = run_local(env, shards, tasks=tasks).counts
    assert Counter(row["n"] for row in sink.to_pylist()) == Counter(rows)
    assert all(row["on_time"] for row in sink.to_pylist())
    assert counts.get("it", {}) == (
        {"in": len(rows), "held": len(rows), "out": len(rows)} if rows else {}
    )


@pytest.mark.parametrize("point", POINTS)
def test_crashes_and_other_numbers_of_shards_change_nothing(point: Any) -> None:
    env, sink = job(list(range(30)), lambda s: s.rebalance(uid="it"))
    run_local(env, 2, crashes=[(1, point)], rescale={2: 3})
    assert sorted(row["n"] for row in sink.to_pylist()) == list(range(30))
    assert {row["shard"] for row in sink.to_pylist()} == {0, 1, 2}


def by_size(n: int | None, partitions: int) -> int:
    """Null and small numbers in the first key group, the others in the last."""
    return partitions - 1 if n is not None and n > 2 else 0


@pytest.mark.parametrize("key", ["n", lambda row: row.n])
def test_a_partitioner_says_which_shard(key: Any) -> None:
    rows = [None, 1, 2, 3, 4, None]
    env, sink = job(rows, lambda s: s.partition_custom(by_size, key, uid="it"))
    run_local(env, 4)
    found = [(row["n"], row["shard"]) for row in sink.to_pylist()]
    assert sorted(found, key=repr) == sorted(
        [(None, 0), (None, 0), (1, 0), (2, 0), (3, 3), (4, 3)], key=repr
    )


def test_several_columns_are_a_tuple() -> None:
    seen: list[Any] = []

    def partitioner(key: Any, partitions: int) -> int:
        seen.append((key, partitions))
        return 0

    env, _ = job([1], lambda s: s.partition_custom(partitioner, ["n", "at"], uid="it"))
    run_local(env, 1)
    assert seen == [((1, START), 128)]


@pytest.mark.parametrize("said", [128, -1, "3", None, True, 1.5])
def test_a_partitioner_that_returns_no_key_group_is_told_what_to_return(said: Any) -> None:
    env, _ = job([7], lambda s: s.partition_custom(lambda *_: said, "n", uid="it"))
    with pytest.raises(UserCodeError, match=r"step 'it'[\s\S]*0 to 127[\s\S]*key 7") as caught:
        run_local(env, 2, attempts=1)
    assert repr(said) in str(caught.value)


def test_windows_behind_it_are_the_same_as_without() -> None:
    def windows(move: Any) -> Counter[Any]:
        env, sink = hr.Environment("moved", epochs=hr.Epochs(rows=9)), MemorySink()
        rows = [{"n": n % 3, "at": START + n * SECOND} for n in range(60)]
        strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
        source = env.from_source(MemorySource(rows), watermarks=strategy, uid="in")
        cut = source.key_by("n").window(hr.windows.Tumbling(5 * SECOND))
        first = cut.aggregate(rows=hr.count(), uid="first").select("n", "rows")
        again = move(first).key_by("n").window(hr.windows.Tumbling(20 * SECOND))
        again.aggregate(total=hr.sum("rows"), uid="second").sink_to(sink, uid="out")
        assert run_local(env, 2).counts["second"].get("late", 0) == 0
        return Counter(tuple(row.values()) for row in sink.to_pylist())

    assert windows(lambda s: s.rebalance(uid="it")) == windows(lambda s: s)


def test_rows_with_and_without_time_stay_apart() -> None:
    env, sink = hr.Environment("moved"), MemorySink()
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    rows = [{"n": 1, "at": START}]
    timed = env.from_source(MemorySource(rows), watermarks=strategy, uid="timed")
    plain = env.from_source(MemorySource([{"n": 2, "at": START}]), uid="plain")
    timed.union(plain, uid="both").rebalance(uid="it").process(
        lambda row, ctx: [{"n": row.n, "timed": ctx.timestamp is not None}],
        schema={"n": int, "timed": bool},
        uid="told",
    ).sink_to(sink, uid="out")
    run_local(env, 1)
    assert sorted(map(str, sink.to_pylist())) == [
        "{'n': 1, 'timed': True}",
        "{'n': 2, 'timed': False}",
    ]


@pytest.mark.parametrize("said", [{}, {"partitioner": lambda *_: 0, "keys": ("word", "view")}])
def test_columns_of_all_types_cross(said: Any) -> None:
    words = ["a", "b", None, "a"]
    columns = {
        "word": pa.array(words).dictionary_encode(),
        "view": pa.array(words, pa.string_view()),
        "list": pa.array([[1], [], None, [None]], pa.list_(pa.int64())),
        "map": pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    node = nodes.Repartition(id=1, uid="it", inputs=(), schema=batch.schema, **said)
    feeder, operator = RepartitionFeeder(node), RepartitionOperator(node)
    for part in (batch.slice(0, 1), batch.slice(1)):
        list(feeder.feed(Rows(part, None), 0))
    for fed in feeder.flush():
        for _, piece in split_by_shard(fed, 2):
            operator.merge(decode_rows(encode_rows(piece)))
    moved = [rows.batch for _, rows in operator.settle()]
    assert all(found.schema.equals(batch.schema) for found in moved)
    arrived = [row for found in moved for row in found.to_pylist()]
    assert sorted(map(str, arrived)) == sorted(map(str, batch.to_pylist()))
    assert list(operator.tick(None)) == []  # type: ignore[arg-type]
