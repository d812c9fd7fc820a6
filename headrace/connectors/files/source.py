"""Files of a directory as rows, replayable by their numbers in a discovery log.

A position is a file, so an epoch takes whole files. A file may not change or vanish before the job is
done with it; if it does, the read fails and names it.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from headrace.config import to_us
from headrace.connectors.files.discovery import DiscoveryLog, SeenFile
from headrace.connectors.files.watcher import FileWatcher, Where
from headrace.endpoints import DeadLetter, Enumerator, Json, Source, SourceBatch
from headrace.errors import BuildError, InputError
from headrace.formats import BadRecord, Decoded, format_named
from headrace.schema import as_schema

__all__ = ["FileSource", "OnError"]

OnError = Literal["fail", "dead_letter"]

_LONGEST_PAYLOAD = 10_000
_LONGEST_SHOWN = 200


class FileSource(Source):
    """Read the files of a directory (or one file, or a pattern with `*`).

    A bounded source takes the files that are there when the job starts; `bounded=False` watches for new
    ones. A record that does not fit the schema fails the job (`on_error="fail"`) or goes to the stream's
    `errors` with its file and line (`on_error="dead_letter"`).

        FileSource("orders/", format="jsonl", schema=Order, bounded=False)
    """

    row_positions = False

    def __init__(
        self,
        path: str | Path,
        format: str = "parquet",
        *,
        schema: Any,
        bounded: bool = True,
        max_files_per_epoch: int | None = None,
        on_error: OnError = "fail",
        poll_interval: timedelta = timedelta(seconds=1),
    ) -> None:
        if "://" in str(path):
            raise BuildError(f"files are read from a local path, which {str(path)!r} is not")
        if on_error not in get_args(OnError):
            raise BuildError(f"on_error must be 'fail' or 'dead_letter', not {on_error!r}")
        if max_files_per_epoch is not None and max_files_per_epoch < 1:
            raise BuildError(f"max_files_per_epoch must be 1 or more, not {max_files_per_epoch!r}")
        self.max_positions = max_files_per_epoch
        self._path = Path(path).expanduser().absolute()
        self._format = format_named(format)
        self._schema = as_schema(schema)
        self._bounded = bounded
        self._on_error = on_error
        self._poll_us = to_us(poll_interval, "poll_interval")

    def __repr__(self) -> str:
        return f"FileSource({str(self._path)!r}, format={self._format.name!r})"

    @property
    def schema(self) -> pa.Schema:
        """The declared columns."""
        return self._schema

    def signature(self) -> dict[str, Json]:
        """Where files come from and how they are read."""
        return {"source": "files", "path": str(self._path), "format": self._format.name}

    def enumerator(self, directory: Path) -> Enumerator:
        """Discover files; a bounded source without any is an `InputError`."""
        poll_s = None if self._bounded else self._poll_us / 1_000_000
        where = Where(self._path, self._format.read_suffixes)
        watcher = FileWatcher(where, DiscoveryLog(directory), poll_s=poll_s)
        watcher.start()
        return watcher

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        """The rows of the files with these numbers; each row's offset is its line in the file."""
        for file in _log(directory).part(start, end):
            file.check()
            yield from self._rows(file)
            file.check()

    def _rows(self, file: SeenFile) -> Iterator[SourceBatch]:
        try:
            for decoded in self._format.read(Path(file.path), self._schema):
                yield SourceBatch(
                    decoded.batch, decoded.lines, file.path, self._dead(file, decoded)
                )
        except OSError as error:
            raise InputError(f"{file.path} cannot be read: {error}") from error

    def _dead(self, file: SeenFile, decoded: Decoded) -> tuple[DeadLetter, ...]:
        if decoded.bad and self._on_error == "fail":
            raise InputError(_sentence(file, decoded.bad[0]))
        return tuple(
            DeadLetter(file.path, bad.line, bad.cause, bad.text[:_LONGEST_PAYLOAD])
            for bad in decoded.bad
        )


#: One log a source and process: reading all of it for each task would cost more than the files.
_LOGS: dict[Path, DiscoveryLog] = {}


def _log(directory: Path) -> DiscoveryLog:
    if directory not in _LOGS:
        _LOGS[directory] = DiscoveryLog(directory)
    return _LOGS[directory]


def _sentence(file: SeenFile, bad: BadRecord) -> str:
    shown = bad.text if len(bad.text) <= _LONGEST_SHOWN else f"{bad.text[:_LONGEST_SHOWN]}..."
    return (
        f"{file.path}, line {bad.line}: {bad.cause}. The line is {shown!r}."
        ' With on_error="dead_letter" such lines go to the errors of the stream instead.'
    )
