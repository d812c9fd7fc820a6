"""Replicas in memory-mapped files, so that whichever worker of a host gets a shard has its state at once.

A job has a directory on each host, a shard a directory in it. The header of a shard's directory exists only
while the buffers are whole: it is unlinked before the first change of an epoch and put back, with the new
stamp, after the last. It names the boot, the job's incarnation, the operator, the shard and the format, and
any other value means that there is no replica. These files are a cache: to lose them costs time only.

What is written to has its disk blocks before, because a full memory disk would otherwise kill the
process (SIGBUS) when it writes. Locks are `flock`: they end with the process that holds them.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
import shutil
import time
import zlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import numpy as np

from headrace._runtime.state.arrays import Arrays, Bytes, MemoryArrays
from headrace.endpoints import Json
from headrace.errors import EngineError

__all__ = ["MappedArrays", "hold", "open_replica", "release", "sweep"]

_FORMAT = 2
_POLL_SECONDS = 0.005
_HOLD = "held"
_held: dict[Path, int] = {}
# Mapping a file again means a page fault for every page touched, which is most of a small epoch. Names are
# random and never reused, so a path always stands for the same file; small files are not worth keeping.
_mapped: dict[Path, Bytes] = {}
_WORTH_KEEPING = 256 * 2**10
_FULL = (errno.ENOSPC, errno.EDQUOT)


class MappedArrays:
    """Buffers in files of one shard's directory. Whoever makes one holds the shard's lock until `close`."""

    room = 16

    def __init__(
        self, directory: Path, identity: Mapping[str, Json], *, fallback: Path | None = None
    ) -> None:
        self._places = {"m": directory} | ({} if fallback is None else {"f": fallback})
        self._identity = {**identity, "boot": _boot_id(), "format": _FORMAT}
        self._header = directory / "header"
        self._lock = -1
        self._prefix = os.urandom(8).hex()
        self._serial = 0
        self._is_clean = True

    def lock(self, wait: timedelta) -> bool:
        """Take the shard's lock; False if another process kept it all the time."""
        directory = self._places["m"]
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _lock_within(self._lock, wait):
            _forget_deleted()
            return True
        self.close()
        return False

    def close(self) -> None:
        """Let others have the shard."""
        if self._lock >= 0:
            # A child that user code forked has the descriptor too, and would keep the lock with it.
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = -1

    def allocate(self, size: int, secured: Sequence[tuple[int, int]]) -> tuple[str, Bytes]:
        """A new buffer of zeros and its name; disk blocks are there for the secured ranges only."""
        self._serial += 1
        for place, directory in self._places.items():
            name = f"{place}-{self._prefix}-{self._serial}"
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            buffer = _create(directory / name, size, secured)
            if buffer is not None:
                _remember(directory / name, buffer, sum(stop - start for start, stop in secured))
                return name, buffer
        places = " nor in ".join(str(directory) for directory in self._places.values())
        raise EngineError(
            f"there is no room for {sum(b - a for a, b in secured):,} bytes of state in {places}: "
            "free some disk or memory there, or give the job fewer keys per host"
        )

    def secure(self, name: str, start: int, stop: int) -> bool:
        """Give one more range of a buffer its disk blocks, if there is room for them."""
        descriptor = self._opened(name)
        try:
            return _has_room(descriptor, [(start, stop)])
        finally:
            os.close(descriptor)

    def open(self, name: str) -> Bytes:
        """The buffer of this name, shared with every process that maps it."""
        path = self._path(name)
        buffer = _mapped.get(path)
        if buffer is None:
            descriptor = self._opened(name)
            try:
                status = os.fstat(descriptor)
                buffer = _map(descriptor, status.st_size)
            finally:
                os.close(descriptor)
            _remember(path, buffer, status.st_blocks * 512)
        return buffer

    def release(self, name: str) -> None:
        """Delete the file; its memory is free when the last mapping of it goes."""
        path = self._path(name)
        _mapped.pop(path, None)
        path.unlink(missing_ok=True)

    def load_header(self) -> dict[str, Json] | None:
        """The header last saved, if it is whole and of this very shard."""
        try:
            content = self._header.read_bytes()
            if content[:8] != b"%08x" % zlib.crc32(content[8:]):
                return None
            saved = json.loads(content[8:])
        except (OSError, ValueError):
            return None
        if saved["identity"] != self._identity:
            return None
        header: dict[str, Json] = saved["header"]
        return header

    def mark_dirty(self) -> None:
        """Changes begin: take the header away."""
        if self._is_clean:
            self._header.unlink(missing_ok=True)
            self._is_clean = False

    def save_header(self, header: dict[str, Json]) -> None:
        """Changes are over: put a header in place, whole or not at all."""
        body = json.dumps({"identity": self._identity, "header": header}).encode()
        new = self._header.with_suffix(".new")
        try:
            new.write_bytes(b"%08x%s" % (zlib.crc32(body), body))
        except OSError as error:
            new.unlink(missing_ok=True)
            if error.errno not in _FULL:
                raise
            # Without a header the next epoch makes the replica anew: slow, and right.
            return
        new.replace(self._header)
        self._is_clean = True

    def clear(self) -> None:
        """Delete every buffer, also those that a killed process left."""
        self.mark_dirty()
        for place, directory in self._places.items():
            for path in directory.glob(f"{place}-*"):
                self.release(path.name)

    def _path(self, name: str) -> Path:
        return self._places[name[0]] / name

    def _opened(self, name: str) -> int:
        path = self._path(name)
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            self.mark_dirty()
            raise EngineError(
                f"{path}, a part of this job's state in memory, was deleted by somebody; it is made anew from the"
                " checkpoint when the task is run again"
            ) from None


def open_replica(
    root: Path,
    incarnation: str,
    *,
    operator: str,
    shard: int,
    fallback: Path | None = None,
    wait: timedelta = timedelta(seconds=10),
) -> Arrays:
    """The replica of a shard on this host, locked; a private empty one if the lock stays taken."""
    hold(root, incarnation)
    if fallback is not None:
        hold(fallback, incarnation)
    name = f"{quote(operator, safe='')}-{shard}"
    identity: dict[str, Json] = {"incarnation": incarnation, "operator": operator, "shard": shard}
    second = None if fallback is None else fallback / incarnation / name
    arrays = MappedArrays(root / incarnation / name, identity, fallback=second)
    return arrays if arrays.lock(wait) else MemoryArrays()


def hold(root: Path, incarnation: str) -> None:
    """Keep a job's directory from `sweep` until `release` or the end of this process."""
    directory = root / incarnation
    if directory in _held and (directory / _HOLD).exists():
        return
    _private(root)
    while True:
        directory.mkdir(mode=0o700, exist_ok=True)
        try:
            descriptor = os.open(directory / _HOLD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if os.fstat(descriptor).st_nlink:
            _held[directory] = descriptor
            return
        # A sweep took the directory away between our `open` and our lock.
        os.close(descriptor)


def release(root: Path, incarnation: str, *, remove: bool) -> None:
    """Give up what `hold` took; `remove` deletes the job's replicas, whoever else holds them."""
    directory = root / incarnation
    descriptor = _held.pop(directory, None)
    if descriptor is not None:
        os.close(descriptor)
    if remove:
        _remove_job(directory)
        _forget_deleted()


def sweep(root: Path, *, keep: str | None = None) -> list[str]:
    """Delete the directories of jobs that no process holds; their names."""
    found = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return [path.name for path in found if path.name != keep and _sweep_job(path)]


def _sweep_job(directory: Path) -> bool:
    try:
        descriptor = os.open(directory / _HOLD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        # Without a link, another sweep was faster, and a new job may have the directory by now.
        return os.fstat(descriptor).st_nlink > 0 and _remove_job(directory)
    finally:
        os.close(descriptor)


def _remove_job(directory: Path) -> bool:
    """Renamed first: who comes now makes a new directory and is not in our way."""
    doomed = directory.with_name(f".{directory.name}.{os.urandom(4).hex()}")
    try:
        directory.rename(doomed)
    except FileNotFoundError:
        return False
    shutil.rmtree(doomed, ignore_errors=True)
    return True


def _private(root: Path) -> None:
    """Replicas hold users' records: the root belongs to us alone, also on a shared memory disk."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = root.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise EngineError(
            f"{root} must belong to this user and be closed to others (mode 0700) to hold state: "
            "remove it or name another directory"
        )


def _lock_within(descriptor: int, wait: timedelta) -> bool:
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        else:
            return True


def _create(path: Path, size: int, secured: Sequence[tuple[int, int]]) -> Bytes | None:
    """A file of zeros that has disk blocks in these ranges; None if there is no room for it, on disk or in addresses."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    made = None
    try:
        os.ftruncate(descriptor, size)
        if _has_room(descriptor, secured):
            made = _map(descriptor, size)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
    finally:
        os.close(descriptor)
        if made is None:
            path.unlink()
    return made


def _has_room(descriptor: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether these ranges of a file have got their disk blocks."""
    try:
        for start, stop in ranges:
            if stop > start:
                os.posix_fallocate(descriptor, start, stop - start)
    except OSError as error:
        if error.errno in _FULL:
            return False
        raise
    return True


def _map(descriptor: int, size: int) -> Bytes:
    """Map a file; the mapping goes with the last array that uses it."""
    return np.frombuffer(mmap.mmap(descriptor, size), dtype=np.uint8)


def _remember(path: Path, buffer: Bytes, used: int) -> None:
    if used >= _WORTH_KEEPING:
        _mapped[path] = buffer


def _forget_deleted() -> None:
    """Let go of files that other processes deleted: their memory is not free before."""
    for path in [path for path in _mapped if not path.exists()]:
        _mapped.pop(path, None)


def _boot_id() -> str:
    """What changes when the host restarts; a memory disk is empty then, another disk is not."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
