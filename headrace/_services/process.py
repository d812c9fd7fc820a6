"""Starts a server's process and ends exactly that one, also from another process and much later.

A process is known by its number, its start time and the boot that it belongs to: a number alone is given to somebody
else sooner or later. It leads a session of its own, so a Ctrl-C in the terminal does not reach it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Known", "Running", "children", "running_as"]

#: Ends the server when the pipe of its standard input breaks, so when the process that holds the other end is gone.
#: PR_SET_PDEATHSIG would do it when the *thread* that started the server ends, and not at all behind a change of user.
_WATCH = 'read -r _; kill -s KILL -- "-$1"'


@dataclass(frozen=True, slots=True)
class Known:
    """Which process it is: enough to find it again and never to take another one for it."""

    pid: int
    start: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Known | None:
        """The process with this number, if there is one that is not a zombie."""
        start = _started(pid)
        return None if start is None else cls(pid, start, _boot())

    @property
    def alive(self) -> bool:
        """It runs."""
        return self.boot == _boot() and _started(self.pid) == self.start

    def send(self, number: int) -> None:
        """Send a signal, unless the process is gone."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def write(self, path: Path) -> None:
        """Remember it in a file."""
        text = json.dumps({"pid": self.pid, "start": self.start, "boot": self.boot})
        draft = path.with_suffix(".draft")
        draft.write_text(text + "\n")
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> Known | None:
        """What `write` remembered, if it is there and whole."""
        try:
            return cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None


@dataclass(slots=True)
class Running:
    """A process that this one started or found."""

    known: Known
    child: subprocess.Popen[bytes] | None = None
    watcher: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        """End it and its children now, with no chance to tidy up."""
        self.known.send(signal.SIGSTOP)  # it starts no more children while they are counted
        for pid in [*children(self.known.pid), self.known.pid] if self.known.alive else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._gone(10)
        self._forget()

    def stop(self, number: int, patience: float) -> None:
        """Ask it to end; after `patience` seconds it is killed."""
        self.known.send(number)
        if not self._gone(patience):
            self.kill()
        self._forget()

    def _gone(self, patience: float) -> bool:
        until = time.monotonic() + patience
        while self.known.alive and time.monotonic() < until:
            time.sleep(0.02)
        return not self.known.alive

    def _forget(self) -> None:
        # The watcher first: while the child is not waited for, its number cannot become somebody else's.
        if self.watcher is not None:
            self.watcher.kill()
            self.watcher.communicate()
            self.watcher = None
        if self.child is not None:
            self.child.wait()
            self.child = None


def running_as(
    command: Sequence[str | Path],
    *,
    log: Path,
    directory: Path,
    user: str | None = None,
    environment: Mapping[str, str] | None = None,
    lasting: bool = False,
) -> Running:
    """Start a process that writes to `log`; it dies with this one unless it is `lasting`."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            user=user,
            group=None if user is None else _group(user),
            extra_groups=None if user is None else [],
        )
    start = _started(child.pid)
    known = Known(child.pid, -1 if start is None else start, _boot())
    return Running(known, child, None if lasting else _watched(child.pid))


def children(pid: int) -> list[int]:
    """The processes below this one, at every depth."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        fields = _stat(int(entry.name)) if entry.name.isdigit() else None
        if fields is not None:
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    todo = [pid]
    while todo:
        below = parents.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _watched(pid: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "headrace-watch", str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


def _started(pid: int) -> int | None:
    """When it started, in clock ticks since the boot; None if it has ended, waited for or not."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


def _stat(pid: int) -> list[str] | None:
    """The fields behind the name, which may itself contain anything: state, parent, group, …"""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
