"""The lease of a checkpoint as a file lock that the JVM holds.

The JVM outlives a killed Python driver for a moment and may still write a commit, so the lock must be its,
not ours. A suspended JVM keeps the lock, a dead one loses it. The lock is a POSIX record lock: any other
process can ask for it without a JVM of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import Any

from headrace.errors import CheckpointInUse

__all__ = ["JvmLease", "refuse_if_held"]

#: A JVM whose driver was killed ends well within this time.
_PATIENCE_S = 5.0


def refuse_if_held(path: Path, patience_s: float = _PATIENCE_S) -> None:
    """Raise `CheckpointInUse` if another process keeps the lease; asks before any JVM is started."""
    deadline = time.monotonic() + patience_s
    while not _is_free(path):
        if time.monotonic() >= deadline:
            raise _in_use(path)
        time.sleep(0.1)


class JvmLease:
    """A lease that the JVM holds; `release` or the end of the JVM gives it up."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._file: Any = None
        self._lock: Any = None

    def acquire(self, path: Path) -> None:
        """Take it or raise `CheckpointInUse`."""
        self._file = self._jvm.java.io.RandomAccessFile(str(path), "rw")
        try:
            self._lock = self._file.getChannel().tryLock()
        except Exception as error:  # the same JVM holds it: Java raises instead of answering None
            self._file.close()
            raise _in_use(path) from error
        if self._lock is None:
            self._file.close()
            raise _in_use(path)

    def held(self) -> bool:
        """Whether the JVM lives and still has the lock."""
        try:
            return bool(self._lock.isValid())
        except Exception:  # noqa: BLE001 - no answer: no JVM, no lock
            return False

    def release(self) -> None:
        """Give the lease up."""
        with contextlib.suppress(Exception):
            self._lock.release()
            self._file.close()


def _is_free(path: Path) -> bool:
    if not path.exists():
        return True
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)


def _in_use(path: Path) -> CheckpointInUse:
    return CheckpointInUse(
        f"The checkpoint {path.parent} is in use by another run, which may be suspended. Stop that run, "
        "or give this job a checkpoint of its own."
    )
