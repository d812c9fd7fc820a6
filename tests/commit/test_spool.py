from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace._commit.spool import (
    SpoolStager,
    StagedFile,
    check_staged,
    discard_spool,
    read_spool,
)
from headrace.endpoints import SinkContext
from headrace.errors import CheckpointDamaged

SCHEMA = pa.schema([("name", pa.string()), ("price", pa.int64())])
BATCH = pa.record_batch([["a", "b"], [1, 2]], schema=SCHEMA)


@pytest.fixture
def context(tmp_path: Path) -> SinkContext:
    return SinkContext("job", "incarnation", "out", SCHEMA, tmp_path / "spool" / "out")


def test_staged_rows_come_back_by_their_receipt(context: SinkContext) -> None:
    stager = SpoolStager(context, 7, "0-abc")
    stager.write(BATCH)
    stager.write(BATCH.slice(0, 0))
    stager.write(BATCH)
    (receipt,) = stager.close()
    assert (receipt.sink, receipt.rows) == ("out", 4)
    assert read_spool(context.spool, receipt) == pa.Table.from_batches([BATCH, BATCH])


def test_no_rows_leave_no_file_and_no_receipt(context: SinkContext) -> None:
    stager = SpoolStager(context, 7, "0-abc")
    stager.write(BATCH.slice(0, 0))
    assert stager.close() == ()
    assert not context.spool.exists()


def test_an_aborted_attempt_leaves_no_file(context: SinkContext) -> None:
    stager = SpoolStager(context, 7, "0-abc")
    stager.write(BATCH)
    stager.abort()
    assert [path for path in context.spool.rglob("*") if path.is_file()] == []


def test_an_altered_truncated_or_missing_file_is_refused_by_name(context: SinkContext) -> None:
    stager = SpoolStager(context, 7, "0-abc")
    stager.write(BATCH)
    (receipt,) = stager.close()
    path = context.spool / receipt.path
    content = path.read_bytes()
    for damaged in (content[:-1], content[:50] + bytes([content[50] ^ 1]) + content[51:], b""):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointDamaged, match=r"0-abc\.arrow does not match"):
            read_spool(context.spool, receipt)
    path.unlink()
    with pytest.raises(CheckpointDamaged, match=r"0-abc\.arrow is missing"):
        read_spool(context.spool, receipt)


def test_discarding_keeps_the_epochs_it_is_told_to(context: SinkContext) -> None:
    for epoch in (1, 2, 3):
        stager = SpoolStager(context, epoch, "t")
        stager.write(BATCH)
        stager.close()
    discard_spool(context.spool, frozenset({2}))
    assert [int(path.name) for path in context.spool.iterdir()] == [2]
    discard_spool(context.spool.parent / "never-made", frozenset())


def test_a_parquet_writer_can_write_to_a_staged_file(tmp_path: Path) -> None:
    staged = StagedFile(tmp_path / "deep" / "file")
    pq.write_table(pa.Table.from_batches([BATCH]), staged)
    staged.close()
    check_staged(staged.path, size=staged.size, crc=staged.crc)
    assert pq.read_table(staged.path).num_rows == 2
