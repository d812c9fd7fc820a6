"""State and metrics of jobs on Spark, read from outside: while they run, when they are stopped, when they are over."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace._spark.state_reader import StateReader, _portions, query_state
from headrace.connectors import generator
from headrace.connectors.memory import MemorySink
from headrace.testing import run_local

SCHEMA = pa.schema([("n", pa.int64())])
RESULT = {"user": str, "n": int}
EPOCH = 25


def numbers(start: int, end: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": list(range(start, end))}, schema=SCHEMA)


def user_of(n: int) -> str:
    return f"user-{n % 40}"


class Seen(hr.KeyedProcessFunction):
    """Every user's rows."""

    count: hr.state.Value[int] = hr.state.FOREVER
    last: hr.state.List[int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        self.last.update([*self.last.get()[-2:], value.n])
        ctx.metrics.counter("rows").inc()
        ctx.metrics.histogram("n").update(value.n)
        yield {"user": ctx.key, "n": self.count.value()}


class Reached(hr.KeyedProcessFunction):
    """By count, the users that have reached it."""

    users: hr.state.Map[str, int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.users.put(value.user, ctx.key)
        ctx.metrics.counter("rows").inc()
        yield {"user": value.user, "n": value.n}


def job(root: Path, *, rows: int | None) -> hr.Environment:
    env = hr.Environment("reads", checkpoint=root / "state", shards=2, epochs=hr.Epochs(rows=EPOCH))
    stream = env.from_source(generator.Function(SCHEMA, numbers, rows=rows), uid="numbers")
    named = stream.map(lambda row: {"user": user_of(row.n), "n": row.n}, schema=RESULT, uid="name")
    seen = named.key_by("user").process(Seen(), schema=RESULT, uid="seen")
    reached = seen.key_by("n").process(Reached(), schema=RESULT, uid="reached")
    reached.sink_to(MemorySink(), uid="out")
    return env


def files(root: Path) -> dict[str, tuple[int, int]]:
    """Everything in a checkpoint, with sizes and times of change."""
    found = [path for path in root.rglob("*") if path.is_file()]
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in found}


def test_running_job_is_read_behind_a_whole_epoch(tmp_path: Path) -> None:
    handle = job(tmp_path, rows=None).start()
    assert handle.await_epoch(3, timeout=timedelta(minutes=2))
    for _ in range(2):
        before = handle.epoch
        found = hr.read_state(tmp_path / "state", "seen", "count")
        rows = sum(found["value"].to_pylist())
        assert rows % EPOCH == 0
        assert before * EPOCH <= rows
    count = handle.query_state("seen", "count", "user-3")
    last = handle.query_state("seen", "last", "user-3")
    assert count >= 2
    assert [n % 40 for n in last] == [3] * len(last)
    assert handle.query_state("reached", "users", 1)["user-3"] == 1
    assert handle.query_state("seen", "count", "nobody") is None
    assert handle.is_running
    assert handle.stop(timeout=60).epoch > 3


def test_stopped_job_is_read_and_nothing_changes(tmp_path: Path) -> None:
    env = job(tmp_path, rows=None)
    handle = env.start()
    assert handle.await_epoch(2, timeout=timedelta(minutes=2))
    rows = (handle.stop(timeout=60).epoch + 1) * EPOCH
    before = files(tmp_path / "state")
    found = hr.read_state(tmp_path / "state", "seen", "count")
    reached = hr.read_state(str(tmp_path / "state"), "reached", "users")
    assert files(tmp_path / "state") == before
    counts = {
        user: sum(user_of(n) == user for n in range(rows)) for user in map(user_of, range(40))
    }
    assert dict(zip(*found.to_pydict().values(), strict=True)) == counts
    assert reached.num_rows == rows
    assert reached.schema.names == ["n", "map_key", "value"]
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    assert hr.read_state(tmp_path / "copy", "seen", "count").equals(found)
    # The next start goes on from the same state.
    again = job(tmp_path, rows=None).start()
    assert again.await_epoch(rows // EPOCH + 1, timeout=timedelta(minutes=2))
    assert again.metrics["seen"]["rows"] == again.summary.counts["seen"]["in"] > rows
    again.stop(timeout=60)


def test_finished_job_has_the_state_and_the_metrics_of_a_local_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = job(tmp_path, rows=110).start()
    assert handle.wait(timeout=120).finished
    local = run_local(job(tmp_path / "local", rows=110))
    for uid, name in (("seen", "count"), ("seen", "last"), ("reached", "users")):
        found = hr.read_state(tmp_path / "state", uid, name)
        assert found.equals(local.read_state(uid, name))
        assert found.num_rows
    assert handle.metrics == local.metrics
    assert handle.metrics["seen"]["rows"] == 110
    assert handle.metrics["seen"]["n"].sum == sum(range(110))
    assert handle.query_state("seen", "last", "user-7") == [7, 47, 87]
    monkeypatch.setattr(StateReader, "_stamps", lambda *_: {"0": "another", "1": "another"})
    with pytest.raises(hr.errors.CheckpointDamaged, match="step 'seen' in shard 0 is not that of"):
        hr.read_state(tmp_path / "state", "seen", "count")


def test_read_that_lost_a_race_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = StateReader.__new__(StateReader)
    results: list[Any] = [RuntimeError("a file is gone"), [], OSError("gone"), OSError("gone too")]

    def last(_: StateReader, groups: range) -> Any:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(StateReader, "_last", last)
    assert reader.logs() == []
    with pytest.raises(hr.errors.EngineError, match="gone too"):
        reader.logs()


def test_no_more_than_spark_lets_through_is_read_at_once() -> None:
    large = 2**27
    assert list(_portions({3: large, 1: large, 2: 1, 4: 2**30, 5: 1})) == [[1, 2], [3], [4], [5]]
    assert list(_portions({})) == []


def test_job_without_an_epoch_has_no_state(tmp_path: Path) -> None:
    env = job(tmp_path, rows=None)
    asked = query_state(env.plan(), env.settings(), "seen", "count", "user-1")
    assert asked is None
    assert not (tmp_path / "state").exists()


def test_what_cannot_be_read_is_answered_with_what_can(tmp_path: Path) -> None:
    with pytest.raises(hr.errors.CheckpointError, match="holds no checkpoint"):
        hr.read_state(tmp_path / "nothing", "seen", "count")
    handle = job(tmp_path, rows=EPOCH).start()
    handle.wait(timeout=120)
    with pytest.raises(hr.errors.BuildError, match=r"no step 'name'.*'reached', 'seen'"):
        hr.read_state(tmp_path / "state", "name", "count")
    with pytest.raises(hr.errors.BuildError, match=r"no state 'users'.*'count', 'last'"):
        handle.query_state("seen", "users", "user-1")
    with pytest.raises(hr.errors.BuildError, match=r"keys of step 'reached' are n \(int64\)"):
        handle.query_state("reached", "users", "user-1")
