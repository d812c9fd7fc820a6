"""What may change between two runs of one checkpoint, and what a stop at the wrong moment leaves."""

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource

ROWS: list[Any] = [{"n": n} for n in range(20)]


def job(
    root: Path, *, extra_step: bool = False, rows: Any = ROWS
) -> tuple[hr.Environment, MemorySink]:
    env = hr.Environment("changing", checkpoint=root / "state", epochs=hr.Epochs(rows=5))
    stream: Any = env.from_source(MemorySource(rows, schema={"n": int}), uid="numbers")
    if extra_step:
        stream = stream.filter(hr.col("n") >= 0)
    sink = MemorySink()
    stream.sink_to(sink, uid="out")
    return env, sink


def test_stateless_step_may_be_added_between_two_runs(tmp_path: Path) -> None:
    env, _ = job(tmp_path)
    handle = env.start()
    assert handle.await_epoch(1, timeout=120)
    stopped = handle.stop(timeout=60)
    assert not stopped.finished or stopped.epoch == 4
    env, sink = job(tmp_path, extra_step=True)
    assert env.execute().finished
    assert sorted(row["n"] for row in sink.to_pylist()) == list(range(20))


def test_stop_before_the_first_epoch_leaves_a_checkpoint_that_works(tmp_path: Path) -> None:
    env, _ = job(tmp_path)
    stopped = env.start().stop(timeout=120)
    assert stopped.epoch <= 1
    env, sink = job(tmp_path)
    assert env.execute().finished
    assert sorted(row["n"] for row in sink.to_pylist()) == list(range(20))


def test_new_input_for_a_finished_job_is_refused_with_what_to_do(tmp_path: Path) -> None:
    env, _ = job(tmp_path)
    env.execute()
    more, _ = job(tmp_path, rows=[*ROWS, {"n": 20}])
    with pytest.raises(hr.errors.HeadraceError) as caught:
        more.execute()
    text = str(caught.value)
    assert "numbers" in text
    assert "new checkpoint" in text


def test_function_that_cannot_travel_is_refused_before_spark_is_asked(tmp_path: Path) -> None:
    import threading

    lock = threading.Lock()

    def locked(row: Any) -> dict[str, int]:
        with lock:
            return {"n": row.n}

    env = hr.Environment("locked", checkpoint=tmp_path / "state")
    stream = env.from_source(MemorySource(ROWS, schema={"n": int}), uid="numbers")
    stream.map(locked, schema={"n": int}, uid="step").sink_to(MemorySink(), uid="out")
    with pytest.raises(hr.errors.BuildError, match="cannot be pickled"):
        env.execute()
    assert not (tmp_path / "state" / "job.json").exists()


def test_abort_ends_the_job_and_the_next_start_goes_on(tmp_path: Path) -> None:
    many = [{"n": n} for n in range(150)]
    env, _ = job(tmp_path, rows=many)
    handle = env.start()
    assert handle.await_epoch(0, timeout=120)
    handle.abort()
    with pytest.raises(hr.errors.EngineError, match="aborted"):
        handle.wait(60)
    env, sink = job(tmp_path, rows=many)
    assert env.execute().finished
    assert sorted(row["n"] for row in sink.to_pylist()) == list(range(150))
