import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace import testing
from headrace.connectors import SpooledSink, TwoPhaseSink, memory
from headrace.endpoints import SinkContext
from headrace.errors import SinkError, UserCodeError

SCHEMA = pa.schema([("n", pa.int64())])


class Notes(TwoPhaseSink):
    """Staged files that publish renames."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.rows: list[Any] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.to_pylist()

    def stage(self) -> dict[str, Any]:
        name = f"{self.epoch}-{self.task}"
        (self.directory / f".{name}").write_text(json.dumps(self.rows))
        return {"name": name}

    def publish(self, epoch: int, tokens: list[dict[str, Any]]) -> None:
        for token in tokens:
            staged = self.directory / f".{token['name']}"
            if staged.exists():
                staged.rename(self.directory / token["name"])

    def discard(self, keep: frozenset[int]) -> None:
        for path in self.directory.glob(".*"):
            if int(path.name[1:].split("-")[0]) not in keep:
                path.unlink()


def context(tmp_path: Path) -> SinkContext:
    return SinkContext("job", "inc", "out", SCHEMA, tmp_path / "spool")


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"n": n} for n in numbers], SCHEMA)


def test_a_job_writes_through_it_and_survives_crashes(tmp_path: Path) -> None:
    env = hr.Environment("notes", checkpoint=tmp_path / "state")
    rows = [{"n": n} for n in range(10)]
    env.from_source(memory.MemorySource(rows), uid="in").sink_to(Notes(tmp_path), uid="out")
    crashes = [(1, "staged"), (2, "durable"), (3, "published")]
    testing.run_local(env, epochs=hr.Epochs(rows=3), tasks=2, crashes=crashes)
    found = [row for path in tmp_path.glob("[0-9]*") for row in json.loads(path.read_text())]
    assert sorted(row["n"] for row in found) == list(range(10))


def test_tasks_share_nothing_that_init_made(tmp_path: Path) -> None:
    sink = Notes(tmp_path)
    first, second = (sink.stager(context(tmp_path), 0, task) for task in "ab")
    first.write(batch(1))
    second.write(batch(2))
    first.close()
    second.close()
    assert json.loads((tmp_path / ".0-a").read_text()) == [{"n": 1}]
    assert sink.rows == []


def test_a_task_without_rows_stages_nothing(tmp_path: Path) -> None:
    stager = Notes(tmp_path).stager(context(tmp_path), 0, "a")
    stager.write(batch())
    assert stager.close() == ()
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (None, "returned None"),
        ({"a": {1}}, "not JSON"),
        ({1: 2}, "comes back"),
        ({"a": (1,)}, "lists"),
    ],
)
def test_a_token_that_publish_would_not_get_is_refused(
    token: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notes, "stage", lambda _: token)
    stager = Notes(tmp_path).stager(context(tmp_path), 0, "a")
    stager.write(batch(1))
    with pytest.raises(UserCodeError, match=words):
        stager.close()


@pytest.mark.parametrize(
    ("raised", "told"), [(ConnectionError, SinkError), (KeyError, UserCodeError)]
)
def test_a_system_that_is_away_is_told_from_a_fault_of_the_code(
    raised: type[Exception], told: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise raised("over there")

    monkeypatch.setattr(Notes, "publish", fail)
    with pytest.raises(told, match=r"'out'.*Notes\.publish failed"):
        Notes(tmp_path).publisher(context(tmp_path)).publish(0, ())


def test_what_is_known_only_elsewhere_says_where(tmp_path: Path) -> None:
    sink = Notes(tmp_path)
    with pytest.raises(AttributeError, match="publish is told the epoch"):
        _ = sink.epoch
    with pytest.raises(AttributeError, match="no attribute 'spoch'"):
        _ = sink.spoch
    assert pickle.loads(pickle.dumps(sink)).directory == tmp_path


class Tables(SpooledSink):
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def publish(self, epoch: int, rows: pa.Table) -> None:
        (self.directory / f"{epoch}.json").write_text(json.dumps(rows.to_pylist()))

    def recover(self) -> int | None:
        return max((int(path.stem) for path in self.directory.glob("*.json")), default=None)


def test_a_spooled_sink_needs_one_method(tmp_path: Path) -> None:
    sink, whose = Tables(tmp_path), context(tmp_path)
    stager = sink.stager(whose, 0, "a")
    stager.write(batch(1, 2))
    publisher = sink.publisher(whose)
    receipts = stager.close()
    publisher.publish(0, receipts)
    publisher.publish(0, receipts)
    publisher.publish(1, ())
    assert json.loads((tmp_path / "0.json").read_text()) == [{"n": 1}, {"n": 2}]
    assert json.loads((tmp_path / "1.json").read_text()) == []
    assert publisher.published() == 1
    assert not any((tmp_path / "spool").iterdir()), "rows that are noted as published are removed"
