"""A worker between two tasks: what it has loaded is not looked at again by the garbage collector, what comes later is."""

import gc
from pathlib import Path
from types import ModuleType

import pytest

import headrace as hr
from headrace._spark import between_tasks
from headrace.connectors import memory


@pytest.fixture
def worker() -> ModuleType:
    module = ModuleType("worker")
    module.main = lambda *streams: streams  # type: ignore[attr-defined]
    return module


def test_what_a_worker_has_loaded_is_frozen_behind_its_first_tasks_only(
    worker: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(1))
    between_tasks._wrap(worker)
    for _ in range(10):
        assert worker.main("in", "out") == ("in", "out")
    assert len(frozen) == between_tasks._LOADING_TASKS


def frozen_objects(batch: object) -> object:
    import pyarrow as pa

    return pa.record_batch({"frozen": [gc.get_freeze_count()]})


def test_workers_of_spark_are_frozen(tmp_path: Path) -> None:
    env = hr.Environment("frozen", checkpoint=tmp_path / "state", epochs=hr.Epochs(rows=1))
    rows = memory.MemorySource([{"n": n} for n in range(12)])
    result = memory.MemorySink()
    stream = env.from_source(rows, uid="rows")
    stream.map_batches(frozen_objects, schema={"frozen": int}, uid="seen").sink_to(
        result, uid="out"
    )
    env.execute()
    assert result.to_pylist()[-1]["frozen"] > 10_000
