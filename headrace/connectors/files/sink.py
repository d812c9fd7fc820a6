"""Exactly-once files: staged in the workers under a hidden directory, shown by a rename.

Readers see only whole files. Those of an epoch appear once the epoch is durable, one right behind the other:
one for each task that had rows, or one for several epochs with `roll_interval`.
"""

import contextlib
import time
import zlib
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from headrace._commit.staged import StagedFile
from headrace.config import to_us
from headrace.connectors.files.layout import SinkLayout, layout_of
from headrace.connectors.files.publisher import RenamePublisher
from headrace.connectors.files.rolling import RollingPublisher
from headrace.endpoints import Json, Publisher, Receipt, Sink, SinkContext, Stager
from headrace.errors import BuildError, SinkError
from headrace.formats import BatchWriter, Format, format_named

__all__ = ["FileSink"]


class FileSink(Sink):
    """Write rows to files of a directory: `parquet`, `jsonl` or `csv`.

    With `roll_interval` the publisher holds epochs back for that long and then shows them as one larger
    file; held rows are safe (staged) and are shown when the job stops. An idle job shows them with its
    next epoch.

        results.sink_to(FileSink("out/", format="parquet"), uid="results")
    """

    def __init__(
        self,
        path: str | Path,
        format: str = "parquet",
        *,
        roll_interval: timedelta | None = None,
    ) -> None:
        self._directory = _checked_directory(path)
        self._format = format_named(format)
        self._roll_us = None if roll_interval is None else to_us(roll_interval, "roll_interval")

    def __repr__(self) -> str:
        return f"FileSink({str(self._directory)!r}, format={self._format.name!r})"

    @property
    def directory(self) -> Path:
        """Where published files lie."""
        return self._directory

    def validate(self, schema: pa.Schema) -> None:
        """Refuse columns that the format cannot hold."""
        self._format.check_writable(schema)

    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        """Begin one task's file of an epoch."""
        return _FileStager(layout_of(self._directory, context), self._format, context, epoch, task)

    def publisher(self, context: SinkContext) -> Publisher:
        """Prepare the directory and the side that renames into it."""
        layout = layout_of(self._directory, context)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SinkError(f"the directory {self._directory} cannot be made: {error}") from error
        if self._roll_us is None:
            return RenamePublisher(layout)
        return RollingPublisher(layout, self._format, self._roll_us / 1_000_000, time.monotonic)


class _FileStager(Stager):
    def __init__(
        self, layout: SinkLayout, format: Format, context: SinkContext, epoch: int, task: str
    ) -> None:
        self._layout = layout
        self._format = format
        self._context = context
        self._path = layout.epoch(epoch) / task
        self._file: StagedFile | None = None
        self._writer: BatchWriter | None = None
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        try:
            self._open().write(batch)
        except OSError as error:
            raise SinkError(f"{self._path} cannot be written: {error}") from error
        self._rows += batch.num_rows

    def close(self) -> Sequence[Receipt]:
        if self._file is None or self._writer is None:
            return ()
        try:
            self._writer.close()
            self._file.close()
        except OSError as error:
            raise SinkError(f"{self._path} cannot be written: {error}") from error
        details: dict[str, Json] = {
            "directory": str(self._layout.directory),
            "suffix": self._format.suffix,
            "schema": zlib.crc32(self._context.schema.serialize()),
        }
        return (
            Receipt(
                self._context.uid,
                str(self._path),
                self._rows,
                self._file.size,
                self._file.crc,
                details,
            ),
        )

    def abort(self) -> None:
        if self._file is None:
            return
        # Arrow's writers write their last bytes when they are collected, to a file that is closed by then.
        with contextlib.suppress(Exception):
            if self._writer is not None:
                self._writer.close()
        self._file.abort()

    def _open(self) -> BatchWriter:
        if self._writer is None:
            self._layout.directory.mkdir(parents=True, exist_ok=True)
            self._file = StagedFile(self._path)
            self._writer = self._format.writer(self._file, self._context.schema)
        return self._writer


def _checked_directory(path: str | Path) -> Path:
    if "://" in str(path):
        raise BuildError(f"files are written to a local directory, which {str(path)!r} is not")
    directory = Path(path).expanduser().absolute()
    if directory.exists() and not directory.is_dir():
        raise BuildError(f"{directory} is a file; a file sink needs a directory")
    return directory
