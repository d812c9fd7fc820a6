"""Looks for files: once for a bounded source, again and again for one that watches a directory.

Hidden files (names with `.` or `_` in front) and empty ones are not looked at. A watched file is taken
when it was the same in two looks, so one that is being written is left alone; renaming a finished file
in is the sure way. Files that appear in the same look are taken in the order of their paths.
"""

import glob
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.connectors.files.discovery import DiscoveryLog, SeenFile, seen
from headrace.endpoints import Enumerator, Span
from headrace.errors import InputError

__all__ = ["PARTITION", "FileWatcher", "Where"]

#: A file source is one watermark partition, whatever files it has.
PARTITION = "files"


@dataclass(frozen=True, slots=True)
class Where:
    """A directory, a file, or a pattern with `*`, and the endings that count in a directory."""

    path: Path
    suffixes: tuple[str, ...]

    def look(self) -> list[SeenFile]:
        """The files there are now, by path."""
        return [file for path in self._paths() if (file := _as_seen(path)) is not None]

    def _paths(self) -> Sequence[Path]:
        if self.path.is_dir():
            found = [path for path in self.path.iterdir() if path.suffix in self.suffixes]
        else:
            # Path.glob would need the directory that the pattern begins below.
            names = [str(self.path)] if self.path.exists() else glob.glob(str(self.path))  # noqa: PTH207
            found = [Path(name) for name in names]
        return sorted(path for path in found if path.name[0] not in "._")


class FileWatcher(Enumerator):
    """Appends new files to the log; `spans` only says how many there are."""

    def __init__(self, where: Where, log: DiscoveryLog, *, poll_s: float | None) -> None:
        self._where = where
        self._log = log
        self._poll_s = poll_s
        self._bounded = poll_s is None

        log.recover()
        self._known = {file.path for file in log.files}
        self._last: Mapping[str, SeenFile] = {}
        self._error: Exception | None = None
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Take what a bounded source has, or begin to watch."""
        if self._bounded:
            self._take_all()
        else:
            self._thread = threading.Thread(target=self._watch, name="headrace-files", daemon=True)
            self._thread.start()

    def spans(self) -> Mapping[str, Span]:
        """One partition with a position for each file."""
        if self._error is not None:
            raise self._error
        return {PARTITION: Span(0, len(self._log.files), finished=self._bounded)}

    def close(self) -> None:
        """Stop to watch."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def poll(self) -> None:
        """One look of a watching source."""
        found = {file.path: file for file in self._where.look() if file.path not in self._known}
        self._take([file for path, file in found.items() if self._last.get(path) == file])
        self._last = found

    def _take_all(self) -> None:
        found = self._where.look()
        if not found and not self._known:
            raise InputError(f"there are no files to read at {self._where.path}")
        self._take([file for file in found if file.path not in self._known])

    def _take(self, files: Sequence[SeenFile]) -> None:
        if files:
            self._log.append(files)
            self._known.update(file.path for file in files)

    def _watch(self) -> None:
        try:
            self.poll()
            while not self._closing.wait(self._poll_s):
                self.poll()
        except Exception as error:  # noqa: BLE001 - told to whoever asks for the spans
            self._error = error


def _as_seen(path: Path) -> SeenFile | None:
    """The file, unless it is empty, no file, or went away between two looks."""
    try:
        file = seen(path)
        return file if file.size and path.is_file() else None
    except FileNotFoundError:
        return None
