"""Tables in files, as a process holds them: read whole, kept until the files are others, and then replaced at once.

A change is taken in when two looks have found the same files, for one that is being written changes from look to look; or at
once if nobody has written to them for as long as lies between two looks. Files that cannot be read then, or that change while they are read, leave the old rows where they are.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from headrace._runtime.joins.lookup.index import KeyIndex
from headrace._runtime.lifecycle import forgotten_on_close
from headrace.errors import HeadraceError, InputError
from headrace.formats import format_named
from headrace.lookups import FileTable

__all__ = ["HeldTable", "files_of", "held"]

_log = logging.getLogger("headrace.lookups")

#: Files that could not be read are tried again when they are others, or after so many looks.
_LOOKS = 30
#: So often a first reading is begun again because the files changed meanwhile.
_ATTEMPTS = 5

#: Path, inode, size and time of the last change of each file.
Seen = tuple[tuple[str, int, int, int], ...]

_held: dict[tuple[object, ...], HeldTable] = {}
forgotten_on_close(_held)  # type: ignore[arg-type]
_making = threading.Lock()


def held(table: FileTable, schema: pa.Schema) -> HeldTable:
    """The table as this process holds it, for all steps that use it."""
    place = (table.path, table.format, table.key, table.check_us, schema)
    with _making:
        if place not in _held:
            _held[place] = HeldTable(table, schema)
        return _held[place]


class HeldTable:
    """The rows of a table with these columns."""

    def __init__(
        self, table: FileTable, schema: pa.Schema, clock: Callable[[], float] = time.monotonic
    ) -> None:
        # configuration
        self._table = table
        self._schema = schema
        self._clock = clock
        self._pause_s = None if table.check_us is None else table.check_us / 1e6
        # working state
        self._turn = threading.Lock()
        self._index: KeyIndex | None = None
        self._loaded: Seen = ()
        #: What the last look found, and when it was.
        self._seen: Seen | None = ()
        self._looked = 0.0
        #: Files that could not be read, and after how many looks they are tried again.
        self._failed: Seen | None = ()
        self._rests = 0

    def index(self) -> KeyIndex:
        """The rows as of the last look. `InputError` if there never were any."""
        with self._turn:
            now = self._clock()
            if self._index is None:
                self._index, self._looked = self._first(), now
            elif self._pause_s is not None and now - self._looked >= self._pause_s:
                self._looked = now
                self._look(_seen_or_none(self._table))
            return self._index

    def _first(self) -> KeyIndex:
        for _ in range(_ATTEMPTS):
            seen = _seen(self._table)
            index = self._read(seen)
            if _seen_or_none(self._table) == seen:
                self._loaded = self._seen = seen
                return index
        raise InputError(
            f"{self._table.path} changes all the time while it is read; write elsewhere and rename the finished file"
            " into its place"
        )

    def _look(self, seen: Seen | None) -> None:
        before, self._seen = self._seen, seen
        if seen == self._loaded:
            self._failed, self._rests = (), 0
        elif seen == before or self._is_at_rest(seen):
            self._replace(seen)

    def _is_at_rest(self, seen: Seen | None) -> bool:
        """Looks are made when rows come, and the next ones may be long in coming."""
        if seen is None or self._pause_s is None:
            return False
        return max(changed for *_, changed in seen) < time.time_ns() - self._pause_s * 1e9

    def _replace(self, seen: Seen | None) -> None:
        if seen == self._failed and self._rests:
            self._rests -= 1
            return
        try:
            index = self._read(_seen(self._table) if seen is None else seen)
        except (HeadraceError, OSError, pa.ArrowException) as error:
            if seen != self._failed:
                _log.warning(
                    "%s cannot be read as it is now (%s); its rows stay those of before", self._table.path, error
                )  # fmt: skip
            self._failed, self._rests = seen, _LOOKS
            return
        if _seen_or_none(self._table) == seen and seen is not None:
            self._index, self._loaded = index, seen

    def _read(self, seen: Seen) -> KeyIndex:
        batches = [batch for path, *_ in seen for batch in self._batches(Path(path))]
        table = pa.Table.from_batches(batches, self._schema).combine_chunks()
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.num_chunks > 1:
                raise InputError(
                    f"the column '{name}' of {self._table.path} is larger than 2 GiB; declare it as pa.large_string() or"
                    " pa.large_binary() with schema="
                )
        arrays = [
            column.chunk(0) if column.num_chunks else pa.array([], column.type)
            for column in table.columns
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return KeyIndex.of(rows, self._table.key)

    def _batches(self, path: Path) -> Iterator[pa.RecordBatch]:
        try:
            for decoded in format_named(self._table.format).read(path, self._schema):
                if decoded.bad:
                    bad = decoded.bad[0]
                    raise InputError(f"{path}, line {bad.line}: {bad.cause}")
                yield decoded.batch
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error}") from error


def files_of(table: FileTable) -> list[Path]:
    """The files that make the table now, by path. `InputError` if there are none."""
    return [Path(path) for path, *_ in _seen(table)]


def _seen(table: FileTable) -> Seen:
    """Hidden files (names with `.` or `_` in front) of a directory, and empty ones, are not looked at."""
    endings = format_named(table.format).read_suffixes
    try:
        paths = [table.path]
        if table.path.is_dir():
            paths = [
                p for p in table.path.iterdir() if p.suffix in endings and p.name[0] not in "._"
            ]
        stats = [(path, path.stat()) for path in sorted(paths)]
    except OSError as error:
        raise InputError(f"{table!r} cannot be read: {error}") from error
    found = [(str(p), s.st_ino, s.st_size, s.st_mtime_ns) for p, s in stats if s.st_size]
    if not found:
        where = "holds no such files" if table.path.is_dir() else "is empty"
        raise InputError(f"{table!r}: {table.path} {where} ({', '.join(endings)})")
    return tuple(found)


def _seen_or_none(table: FileTable) -> Seen | None:
    try:
        return _seen(table)
    except InputError:
        return None
