"""The lease: one run at a time may write a checkpoint.

A lock on a file goes with its process, however that ends, so a crash never leaves a checkpoint locked.
POSIX record locks are used because the JVM takes the same kind: a run in this process and one on Spark
exclude each other. They do not exclude two runs of one process, so this module keeps count of those.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import Protocol

from headrace.errors import CheckpointInUse

__all__ = ["FileLease", "Lease"]


class Lease(Protocol):
    """The right to write a checkpoint."""

    def acquire(self, path: Path) -> None:
        """Take it or raise `CheckpointInUse`; never wait."""

    def held(self) -> bool:
        """Whether this run still has it."""

    def release(self) -> None:
        """Give it back."""


_taken: set[tuple[int, int]] = set()
_guard = threading.Lock()


class FileLease:
    """A lease for runs without a JVM."""

    def __init__(self) -> None:
        self._handle: int | None = None
        self._file: tuple[int, int] | None = None
        self._path: Path | None = None

    def acquire(self, path: Path) -> None:
        """Lock the file, which is made if need be."""
        with _guard:
            # Closing any handle of a file drops this process's locks on it: look before opening.
            if path.exists() and _identity(path) in _taken:
                raise _in_use(path, "this process")
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                raise _in_use(path, "another process") from None
            self._handle, self._file, self._path = handle, _identity(path), path
            _taken.add(self._file)

    def held(self) -> bool:
        """False after `release`, and if somebody removed the file and with it the lock's meaning."""
        if self._path is None:
            return False
        try:
            return _identity(self._path) == self._file
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Unlock; harmless if nothing is held."""
        with _guard:
            if self._handle is not None and self._file is not None:
                _taken.discard(self._file)
                os.close(self._handle)
            self._handle = self._file = self._path = None


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _in_use(path: Path, holder: str) -> CheckpointInUse:
    return CheckpointInUse(
        f"checkpoint {path.parent} is in use by {holder}; a checkpoint serves one run at a time"
    )
