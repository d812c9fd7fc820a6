"""The spool: staged rows as Arrow files beside the checkpoint, for sinks without a staging area.

    <spool>/<epoch>/<task>.arrow

A receipt's path is relative to the spool, so a checkpoint may be moved. Reading checks size and checksum
first: rows that changed on disk are never published.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from headrace._commit.staged import StagedFile, check_staged
from headrace.endpoints import Receipt, SinkContext, Stager

__all__ = [
    "SpoolStager",
    "StagedFile",
    "check_staged",
    "discard_spool",
    "read_spool",
    "remove_spooled",
]


class SpoolStager(Stager):
    """Stages one task's rows of one epoch in the spool. The file is made with the first row."""

    def __init__(self, context: SinkContext, epoch: int, task: str) -> None:
        self._context = context
        self._name = f"{_directory(epoch)}/{task}.arrow"
        self._rows = 0
        self._file: StagedFile | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows of the context's schema."""
        if batch.num_rows == 0:
            return
        if self._writer is None:
            self._file = StagedFile(self._context.spool / self._name)
            self._writer = pa.ipc.new_stream(self._file, self._context.schema)
        self._writer.write_batch(batch)
        self._rows += batch.num_rows

    def close(self) -> Sequence[Receipt]:
        """One receipt, or none without rows."""
        if self._writer is None or self._file is None:
            return ()
        self._writer.close()
        self._file.close()
        return (
            Receipt(self._context.uid, self._name, self._rows, self._file.size, self._file.crc),
        )

    def abort(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.abort()


def read_spool(spool: Path, receipt: Receipt) -> pa.Table:
    """The rows of a receipt, or `CheckpointDamaged` with the file's name."""
    path = spool / receipt.path
    check_staged(path, size=receipt.size, crc=receipt.crc)
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        return reader.read_all()


def discard_spool(spool: Path, keep: frozenset[int]) -> None:
    """Remove the epochs that are not in `keep`."""
    if not spool.is_dir():
        return
    for directory in spool.iterdir():
        if directory.name.isdigit() and int(directory.name) not in keep:
            shutil.rmtree(directory, ignore_errors=True)


def remove_spooled(spool: Path, epoch: int) -> None:
    """Remove one epoch, if it has anything."""
    shutil.rmtree(spool / _directory(epoch), ignore_errors=True)


def _directory(epoch: int) -> str:
    return f"{epoch:012d}"
