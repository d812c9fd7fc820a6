"""Publication beside the epochs: large parts on the workers, a sink that is away, one that refuses."""

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkContext, TaskContext

import headrace as hr
from headrace._commit.spool import SpoolStager, read_spool
from headrace._spark.spreading import POOL
from headrace.connectors import generator
from headrace.connectors.memory import MemorySource
from headrace.endpoints import Publisher, Receipt, Sink, SinkContext, Stager
from headrace.errors import SinkError, SinkRefused

NUMBERS = pa.schema([("n", pa.int64())])


class Spreading(Sink):
    """Has workers append the rows of each receipt to a file of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        return SpoolStager(context, epoch, task)

    def publisher(self, context: SinkContext) -> Publisher:
        return SpreadingPublisher(self.folder, context)


class SpreadingPublisher(Publisher):
    def __init__(self, folder: Path, context: SinkContext) -> None:
        self.folder, self.context = folder, context

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        assert self.context.spread is not None
        parts = [(str(self.folder), str(self.context.spool), receipt) for receipt in receipts]
        ran = self.context.spread(write_part, parts) if parts else []
        assert len(ran) == len(receipts)
        assert all(pid != os.getpid() and pool == POOL for pid, pool in ran)


def write_part(part: tuple[str, str, Receipt]) -> tuple[int, str | None]:
    """The process that did it, and the scheduler pool that its task is in."""
    task = TaskContext.get()
    assert task is not None
    folder, spool, receipt = part
    numbers = read_spool(Path(spool), receipt).column("n").to_pylist()
    with (Path(folder) / str(os.getpid())).open("a") as file:
        file.write("".join(f"{n}\n" for n in numbers))
    return os.getpid(), task.getLocalProperty("spark.scheduler.pool")


class Away(Spreading):
    """A sink whose system is never there, or never takes anything."""

    def __init__(self, error: type[SinkError]) -> None:
        self.error = error

    def publisher(self, context: SinkContext) -> Publisher:
        return AwayPublisher(self.error)


class AwayPublisher(Publisher):
    def __init__(self, error: type[SinkError]) -> None:
        self.error = error

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        raise self.error("nobody is at home")


def test_workers_publish_large_parts(tmp_path: Path) -> None:
    env = hr.Environment(
        "spread", checkpoint=tmp_path / "state", shards=2, restart=hr.Restart.never()
    )
    rows = env.from_source(MemorySource([{"n": n} for n in range(1_000)]), uid="rows")
    (tmp_path / "out").mkdir()
    rows.sink_to(Spreading(tmp_path / "out"), uid="out")
    env.execute()
    written = [int(n) for p in (tmp_path / "out").iterdir() for n in p.read_text().split()]
    assert sorted(written) == list(range(1_000))
    assert pool_weight(POOL) < pool_weight("default")


def pool_weight(name: str) -> int:
    """As the running scheduler has it."""
    context = SparkContext._active_spark_context
    assert context is not None
    return int(context._jsc.sc().getPoolForName(name).get().weight())


def endless(tmp_path: Path, error: type[SinkError]) -> hr.Environment:
    env = hr.Environment(
        "away",
        checkpoint=tmp_path / "state",
        epochs=hr.Epochs(rows=10, max_unpublished=2),
        shards=2,
    )
    source = generator.Function(
        NUMBERS, lambda start, end: pa.record_batch([list(range(start, end))], NUMBERS), rows=None
    )
    env.from_source(source, uid="rows").sink_to(Away(error), uid="out")
    return env


def test_a_job_whose_sink_is_away_takes_in_no_more_and_can_be_stopped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = endless(tmp_path, SinkError).start()
    assert job.await_epoch(1, timeout=timedelta(minutes=2))
    assert not job.await_epoch(2, timeout=timedelta(seconds=3)), "two epochs may wait, not three"
    job.stop(timeout=timedelta(minutes=1))
    said = capfd.readouterr().err
    assert "a sink is away, its epochs wait: nobody is at home" in said
    assert "2 epochs are staged and durable; the next start publishes them" in said


def test_a_refusal_ends_the_job_with_its_sentence(tmp_path: Path) -> None:
    with pytest.raises(SinkRefused, match="nobody is at home"):
        endless(tmp_path, SinkRefused).execute()
