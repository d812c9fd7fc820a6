"""A file staged for a sink: written once, checksummed as it is written, durable when closed.

Looks like a writable file, so Arrow's writers can write to it. Used by the spool and by sinks that stage
files in a place of their own.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path

from headrace._commit.files import make_directory, remove, sync_directory
from headrace.errors import CheckpointDamaged

__all__ = ["StagedFile", "check_staged"]

_BLOCK = 1 << 20


class StagedFile:
    """A new file; its directory is made if need be. `size` and `crc` are those of what was written."""

    def __init__(self, path: Path) -> None:
        make_directory(path.parent)
        self.path = path
        self.size = 0
        self.crc = 0
        self._file = path.open("xb")

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, content: bytes | memoryview) -> int:
        """Append."""
        written = memoryview(content).cast("B")
        self._file.write(written)
        self.crc = zlib.crc32(written, self.crc)
        self.size += len(written)
        return len(written)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing: `close` makes all of it durable at once."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Make the file durable. Closing twice is harmless."""
        if self._file.closed:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        sync_directory(self.path.parent)

    def abort(self) -> None:
        """Remove the file, closed or not."""
        with contextlib.suppress(OSError):
            self._file.close()
        remove(self.path)


def check_staged(path: Path, *, size: int, crc: int) -> None:
    """Raise `CheckpointDamaged` unless the file is what was staged."""
    found_size = found_crc = 0
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found_size += len(block)
                found_crc = zlib.crc32(block, found_crc)
    except FileNotFoundError:
        raise CheckpointDamaged(f"the staged file {path} is missing") from None
    if (found_size, found_crc) != (size, crc):
        raise CheckpointDamaged(f"the staged file {path} does not match its checksum")
