"""The file sink: invisible until published, published once, whole and readable by everybody."""

import pickle
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from headrace._commit.checkpoint import Checkpoint
from headrace._commit.manifest import Manifest, write_manifest
from headrace._commit.recovery import recover
from headrace.connectors.files import FileSink
from headrace.endpoints import Receipt, SinkContext
from headrace.errors import BuildError, CheckpointDamaged

SCHEMA = pa.schema({"n": pa.int64(), "name": pa.string(), "at": pa.timestamp("us", tz="UTC")})
AT = datetime(2025, 1, 1, 12, tzinfo=UTC)


def context(tmp_path: Path, **changes: Any) -> SinkContext:
    fields = {"job": "job", "incarnation": "0123456789abcdef", "uid": "results", "schema": SCHEMA}
    return SinkContext(**{**fields, "spool": tmp_path / "spool", **changes})


def batch(*numbers: int) -> pa.RecordBatch:
    rows = [{"n": n, "name": f"row {n}", "at": AT + timedelta(seconds=n)} for n in numbers]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def stage(sink: FileSink, owner: SinkContext, epoch: int, **tasks: list[int]) -> list[Receipt]:
    receipts: list[Receipt] = []
    for task, numbers in tasks.items():
        stager = sink.stager(owner, epoch, task)
        stager.write(batch(*numbers))
        receipts += stager.close()
    return receipts


def shown(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*") if not path.name.startswith("."))


READERS: dict[str, Any] = {
    "duckdb": lambda path, f: duckdb.sql(f"SELECT * FROM '{path}/*.{f}'").df(),
    "polars": lambda path, f: getattr(
        pl, {"parquet": "read_parquet", "jsonl": "read_ndjson", "csv": "read_csv"}[f]
    )(f"{path}/*.{f}").to_dict(as_series=False),
    "pandas": lambda path, f: pd.concat(
        {
            "parquet": pd.read_parquet,
            "jsonl": lambda p: pd.read_json(p, lines=True),
            "csv": pd.read_csv,
        }[f](p)
        for p in path.glob(f"*.{f}")
    ),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_published_files_are_read_by_others_while_more_is_staged(
    format: str, reader: str, tmp_path: Path
) -> None:
    sink, owner = FileSink(tmp_path / "out", format), context(tmp_path)
    publisher = sink.publisher(owner)
    publisher.publish(0, stage(sink, owner, 0, a=[1, 2], b=[3]))
    stage(sink, owner, 1, a=[99])
    found = READERS[reader](tmp_path / "out", format)
    assert sorted(found["n"]) == [1, 2, 3]
    assert sorted(found["name"]) == ["row 1", "row 2", "row 3"]
    instants = pd.to_datetime(pd.Series(list(found["at"])), utc=True)
    assert sorted(instants) == [AT + timedelta(seconds=n) for n in (1, 2, 3)]


def test_pandas_reads_the_directory_as_one_table(tmp_path: Path) -> None:
    sink, owner = FileSink(tmp_path / "out"), context(tmp_path)
    publisher = sink.publisher(owner)
    publisher.publish(0, stage(sink, owner, 0, a=[1], b=[2]))
    stage(sink, owner, 1, a=[99])
    assert sorted(pd.read_parquet(tmp_path / "out")["n"]) == [1, 2]


def test_nothing_is_visible_before_it_is_published(tmp_path: Path) -> None:
    sink, owner = FileSink(tmp_path / "out"), context(tmp_path)
    receipts = stage(sink, owner, 4, a=[1], b=[2])
    assert shown(tmp_path / "out") == []
    assert not list((tmp_path / "out").rglob("*.parquet"))
    sink.publisher(owner).publish(4, receipts)
    assert shown(tmp_path / "out") == [
        "01234567-results-000000000004-0.parquet",
        "01234567-results-000000000004-1.parquet",
    ]


def test_publishing_again_changes_nothing_wherever_a_crash_was(tmp_path: Path) -> None:
    sink, owner = FileSink(tmp_path / "out", "jsonl"), context(tmp_path)
    receipts = stage(sink, owner, 0, a=[1], b=[2])
    Path(receipts[0].path).rename(tmp_path / "out" / "01234567-results-000000000000-0.jsonl")
    for _ in range(3):
        sink.publisher(owner).publish(0, receipts)
    contents = [path.read_text() for path in sorted((tmp_path / "out").glob("*.jsonl"))]
    assert len(contents) == 2
    assert '"n":1' in contents[0]
    assert '"n":2' in contents[1]


def test_file_numbers_do_not_depend_on_the_order_of_receipts(tmp_path: Path) -> None:
    sink, owner = FileSink(tmp_path / "out", "jsonl"), context(tmp_path)
    receipts = stage(sink, owner, 0, a=[1], b=[2])
    publisher = sink.publisher(owner)
    publisher.publish(0, receipts)
    publisher.publish(0, receipts[::-1])
    assert len(shown(tmp_path / "out")) == 2


@pytest.mark.parametrize("harm", ["flip", "truncate", "remove"])
def test_a_damaged_staged_file_is_named_and_nothing_of_its_epoch_is_shown(
    harm: str, tmp_path: Path
) -> None:
    sink, owner = FileSink(tmp_path / "out"), context(tmp_path)
    receipts = stage(sink, owner, 0, a=[1], b=[2])
    path = Path(receipts[1].path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content) if harm == "flip" else path.read_bytes()[:-1])
    if harm == "remove":
        path.unlink()
    with pytest.raises(CheckpointDamaged, match="/b "):
        sink.publisher(owner).publish(0, receipts)
    assert shown(tmp_path / "out") == []


@pytest.mark.parametrize("content", [b"", b'{"n":1}', b'{"n":1}\n' * 99])
def test_a_published_file_of_another_size_than_the_staged_one_is_named(
    content: bytes, tmp_path: Path
) -> None:
    sink, owner = FileSink(tmp_path / "out", "jsonl"), context(tmp_path)
    receipts = stage(sink, owner, 0, a=[1], b=[2])
    sink.publisher(owner).publish(0, receipts)
    path = tmp_path / "out" / "01234567-results-000000000000-1.jsonl"
    whole = path.read_bytes()
    path.write_bytes(content)
    words = rf"{path.name} has {len(content)} bytes; {len(whole)} were staged"
    with pytest.raises(CheckpointDamaged, match=words):
        sink.publisher(owner).publish(0, receipts)
    assert path.read_bytes() == content
    path.write_bytes(whole)
    sink.publisher(owner).publish(0, receipts)


def test_a_published_file_that_is_gone_is_missing(tmp_path: Path) -> None:
    sink, owner = FileSink(tmp_path / "out", "jsonl"), context(tmp_path)
    receipts = stage(sink, owner, 0, a=[1])
    sink.publisher(owner).publish(0, receipts)
    (tmp_path / "out" / "01234567-results-000000000000-0.jsonl").unlink()
    with pytest.raises(CheckpointDamaged, match="/0/a is missing"):
        sink.publisher(owner).publish(0, receipts)


def test_a_task_without_rows_leaves_no_file_and_no_receipt(tmp_path: Path) -> None:
    sink, owner = FileSink(tmp_path / "out"), context(tmp_path)
    assert stage(sink, owner, 0, a=[]) == []
    sink.publisher(owner).publish(0, [])
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_an_aborted_task_leaves_nothing(tmp_path: Path) -> None:
    sink, owner = FileSink(tmp_path / "out"), context(tmp_path)
    stager = sink.stager(owner, 0, "a")
    stager.write(batch(1))
    stager.abort()
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_discard_keeps_the_epochs_it_is_told_and_other_jobs(tmp_path: Path) -> None:
    sink, owner = FileSink(tmp_path / "out"), context(tmp_path)
    kept = stage(sink, owner, 3, a=[3])
    stage(sink, owner, 4, a=[4])
    other = stage(sink, context(tmp_path, incarnation="fedcba9876543210"), 4, a=[5])
    sibling = stage(sink, context(tmp_path, uid="late"), 4, a=[6])
    sink.publisher(owner).discard(frozenset({3}))
    staged = {str(path) for path in (tmp_path / "out" / ".staging").rglob("*") if path.is_file()}
    assert staged == {receipt.path for receipt in (*kept, *other, *sibling)}


def test_an_unfinished_attempt_goes_with_its_epoch(tmp_path: Path) -> None:
    sink, owner = FileSink(tmp_path / "out"), context(tmp_path)
    stage(sink, owner, 0, failed=[7])
    publisher = sink.publisher(owner)
    publisher.publish(0, stage(sink, owner, 0, second=[7]))
    publisher.close()
    assert len(shown(tmp_path / "out")) == 1
    assert not (tmp_path / "out" / ".staging").exists()


def test_two_sinks_and_two_incarnations_share_a_directory(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out")
    owners = [
        context(tmp_path),
        context(tmp_path, uid="late/rows"),
        context(tmp_path, incarnation="fedcba9876543210"),
    ]
    for number, owner in enumerate(owners):
        sink.publisher(owner).publish(0, stage(sink, owner, 0, a=[number]))
    assert sorted(pd.read_parquet(tmp_path / "out")["n"]) == [0, 1, 2]


def test_rows_staged_for_a_directory_appear_there_when_the_sink_has_moved(tmp_path: Path) -> None:
    owner = context(tmp_path)
    receipts = stage(FileSink(tmp_path / "old", "csv"), owner, 0, a=[1])
    FileSink(tmp_path / "new", "jsonl").publisher(owner).publish(0, receipts)
    assert shown(tmp_path / "old") == ["01234567-results-000000000000-0.csv"]
    assert shown(tmp_path / "new") == []


@pytest.mark.parametrize("roll_interval", [None, timedelta(hours=1)])
def test_the_highest_epoch_seen_is_that_of_any_file_of_this_sink(
    tmp_path: Path, roll_interval: timedelta | None
) -> None:
    out = tmp_path / "out"
    sink, owner = FileSink(out, "jsonl", roll_interval=roll_interval), context(tmp_path)
    assert sink.publisher(owner).highest_seen() is None
    for name in (
        "fedcba98-results-000000000099-0.jsonl",
        "01234567-late-000000000099-0.jsonl",
        "01234567-results-000000000099-1-0.jsonl",
        "01234567-results-000000000099-0",
    ):
        (out / name).touch()
    assert sink.publisher(owner).highest_seen() is None
    (out / "01234567-results-000000000003-1.csv").touch()
    assert sink.publisher(owner).highest_seen() == 3
    (out / "01234567-results-000000000004-to-000000000007.jsonl").touch()
    assert sink.publisher(owner).highest_seen() == 7


def test_an_older_copy_of_the_checkpoint_is_refused_and_no_file_changes(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out", "jsonl")
    checkpoint = Checkpoint.open(
        tmp_path / "c", job="j", signature={}, digest="d", shards=1, default_shards=1, versions={}
    )
    owner = context(tmp_path, incarnation=checkpoint.incarnation)
    for epoch in range(2):
        run_epoch(checkpoint, epoch, stage(sink, owner, epoch, a=[epoch]))
    recover(checkpoint, {"results": sink.publisher(owner)})
    shutil.copytree(tmp_path / "c", tmp_path / "copy")
    run_epoch(checkpoint, 2, stage(sink, owner, 2, a=[2], b=[3]))
    recover(checkpoint, {"results": sink.publisher(owner)})
    before = {path: path.read_bytes() for path in (tmp_path / "out").glob("*.jsonl")}
    shutil.rmtree(tmp_path / "c")
    (tmp_path / "copy").rename(tmp_path / "c")
    with pytest.raises(CheckpointDamaged, match="shows epoch 2, but the last commit is commits/1"):
        recover(checkpoint, {"results": sink.publisher(owner)})
    assert {path: path.read_bytes() for path in (tmp_path / "out").glob("*.jsonl")} == before


def run_epoch(checkpoint: Checkpoint, epoch: int, receipts: list[Receipt]) -> None:
    """Make an epoch durable; its rows are not shown yet."""
    layout = checkpoint.layout
    for directory in (layout.offsets, layout.commits):
        directory.mkdir(parents=True, exist_ok=True)
    layout.offset(epoch).touch()
    write_manifest(
        layout,
        Manifest(
            epoch=epoch,
            fence=checkpoint.fence,
            incarnation=checkpoint.incarnation,
            receipts=tuple(receipts),
        ),
    )
    layout.commit(epoch).touch()


def test_a_sink_travels_by_pickle_and_has_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sink = FileSink("out")
    monkeypatch.chdir("/")
    copy = pickle.loads(pickle.dumps(sink))
    assert copy.directory == tmp_path / "out"


def test_options_that_cannot_work_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BuildError, match="is a file"):
        FileSink(tmp_path / "file")
    with pytest.raises(BuildError, match="local directory"):
        FileSink("s3://bucket/out")
    with pytest.raises(BuildError, match="there is no format"):
        FileSink(tmp_path, "avro")
    with pytest.raises(BuildError, match="roll_interval"):
        FileSink(tmp_path, roll_interval=timedelta(0))
    with pytest.raises(BuildError, match="Parquet cannot hold"):
        FileSink(tmp_path).validate(pa.schema({"u": pa.sparse_union([pa.field("a", pa.int8())])}))
