"""Which files a source reads, in a log that only grows.

    <directory>/files.log      one line a file: checksum, {"path", "size", "mtime_ns"}

The first line is a random name of the log itself; the number of any other is the file's position for ever.
A line is durable before its position is told to anybody, so a replay finds the same file under the same
number, or learns that it changed.
"""

import json
import os
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace._commit.files import sync_directory
from headrace.errors import CheckpointDamaged, InputError

__all__ = ["DiscoveryLog", "SeenFile", "seen"]

_NAME = "files.log"


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as it was when it was discovered."""

    path: str
    size: int
    mtime_ns: int

    def check(self) -> None:
        """Raise `InputError` unless the file is still what it was."""
        try:
            now = seen(Path(self.path))
        except FileNotFoundError:
            message = f"{self.path} is gone; the job has taken it in and must read it again"
            raise InputError(message) from None
        if now != self:
            raise InputError(
                f"{self.path} changed since the job discovered it (it had {self.size} bytes, now"
                f" {now.size}); a file must not change once it is in the directory: write it"
                " elsewhere and rename it in"
            )


def seen(path: Path) -> SeenFile:
    """The file as it is now."""
    status = path.stat()
    return SeenFile(str(path), status.st_size, status.st_mtime_ns)


class DiscoveryLog:
    """The log as one process sees it. Only the source's enumerator appends."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _NAME
        self._header = b""
        self._files: list[SeenFile] = []
        self._bytes = 0

    @property
    def files(self) -> Sequence[SeenFile]:
        """All files known so far, in order."""
        return self._files

    def refresh(self) -> None:
        """Read what was appended since the last look; half a line at the end is not there yet."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            self._recognise(file.readline())
            file.seek(self._bytes)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]
        for line in whole.splitlines():
            self._files.append(self._parse(line))
        self._bytes += len(whole)

    def _recognise(self, header: bytes) -> None:
        """A log that was removed and begun again is another one: forget what was read."""
        if header.endswith(b"\n") and header != self._header:
            self._header, self._files, self._bytes = header, [], len(header)

    def recover(self) -> None:
        """Read the log and cut off half a line that a crash left; nobody was told of it."""
        self.refresh()
        if self._path.exists() and self._path.stat().st_size > self._bytes:
            os.truncate(self._path, self._bytes)

    def append(self, files: Sequence[SeenFile]) -> None:
        """Add files, durably."""
        content = b"".join(_line(asdict(file)) for file in files)
        is_new = not self._header
        if is_new:
            self._header = _line({"log": secrets.token_hex(8)})
            content = self._header + content
        with self._path.open("ab") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_directory(self._path.parent)
        self._files += files
        self._bytes += len(content)

    def part(self, start: int, end: int) -> Sequence[SeenFile]:
        """The files at the positions `[start, end)`."""
        self.refresh()
        if end > len(self._files):
            message = f"{self._path} has {len(self._files)} files; the checkpoint speaks of {end}"
            raise CheckpointDamaged(message)
        return self._files[start:end]

    def _parse(self, line: bytes) -> SeenFile:
        crc, _, body = line.partition(b" ")
        try:
            if int(crc, 16) != zlib.crc32(body):
                raise ValueError("its checksum is wrong")
            return SeenFile(**json.loads(body))
        except (ValueError, TypeError) as error:
            message = f"line {len(self._files) + 1} of {self._path} is damaged: {error}"
            raise CheckpointDamaged(message) from error


def _line(record: Mapping[str, object]) -> bytes:
    body = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)
