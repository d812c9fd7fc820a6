"""Warnings of the planner and of the workers, which have no terminal: lines of a file that the driver reads.

Nothing depends on them. They are in Spark's log too, and a line that cannot be written here is only there.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from headrace._commit.files import remove

__all__ = ["Notices", "forward_warnings"]

_LOGGER = "headrace"


class _Forwarding(logging.Handler):
    def __init__(self, path: Path) -> None:
        super().__init__(logging.WARNING)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        if logging.lastResort is not None:
            logging.lastResort.handle(record)
        line = " ".join(record.getMessage().split()) + "\n"
        with contextlib.suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line.encode(errors="replace"))
            finally:
                os.close(file)


def forward_warnings(path: Path) -> None:
    """From now on what this process warns of is appended to `path`, and to no earlier one."""
    logger = logging.getLogger(_LOGGER)
    for earlier in [one for one in logger.handlers if isinstance(one, _Forwarding)]:
        logger.removeHandler(earlier)
    logger.addHandler(_Forwarding(path))


class Notices:
    """The driver's end: whole lines, each once."""

    def __init__(self, path: Path) -> None:
        """Forget what was said to an earlier start."""
        self._path = path
        self._position = 0
        remove(path)

    def new(self) -> list[str]:
        """What was said since the last call."""
        try:
            if self._path.stat().st_size <= self._position:
                return []
            with self._path.open("rb") as file:
                file.seek(self._position)
                whole = file.read().rpartition(b"\n")[0]
        except OSError:
            return []
        self._position += len(whole) + 1 if whole else 0
        return whole.decode(errors="replace").splitlines()
