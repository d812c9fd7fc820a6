"""What was replayed already, in a checksummed file, so that no dead letter is sent twice.

Before a transaction the file says what it will hold; the transaction itself carries its number as the offset of a
consumer group that nobody else has. So a crash between the commit and the note behind it leaves a question that the
broker can answer, for as long as it keeps the offsets of a group (a week, unless it is told otherwise).
"""

from __future__ import annotations

import fcntl
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headrace._cli.letters import address_of
from headrace._commit.files import make_directory, read_record, write_record
from headrace.endpoints import Json
from headrace.errors import CheckpointDamaged, InputError

__all__ = ["Attempt", "Replayed", "locked", "memory_told", "state_of"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A transaction that was begun: its number, where its mark is, and what it holds."""

    number: int
    topic: str
    letters: tuple[str, ...]


@dataclass(slots=True)
class Replayed:
    """The content of the file."""

    path: Path
    #: Names the consumer group and the transactional id.
    name: str
    #: When each letter was sent.
    sent: dict[str, str]
    number: int = 0
    pending: Attempt | None = None

    @classmethod
    def read(cls, path: Path) -> Replayed:
        """What the file says, or an empty one if there is none."""
        if not path.exists():
            return cls(path, f"headrace-dlq-{uuid.uuid4().hex}", {})
        try:
            body = read_record(path)
        except CheckpointDamaged as error:
            raise InputError(
                f"{error}. It says which dead letters were replayed; delete it if they may be sent again."
            ) from error
        waiting = body["pending"]
        pending = (
            None
            if waiting is None
            else Attempt(**{**waiting, "letters": tuple(waiting["letters"])})
        )
        return cls(path, body["name"], body["sent"], body["number"], pending)

    def begin(self, topic: str, letters: Sequence[str]) -> Attempt:
        """Note what is about to be sent."""
        self.number += 1
        self.pending = Attempt(self.number, topic, tuple(letters))
        self._write()
        return self.pending

    def settle(self, *, committed: bool) -> None:
        """Note what became of it."""
        assert self.pending is not None
        if committed:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self.sent |= dict.fromkeys(self.pending.letters, now)
        self.pending = None
        self._write()

    def _write(self) -> None:
        make_directory(self.path.absolute().parent)
        pending: Json = None
        if self.pending is not None:
            attempt = self.pending
            pending = {"number": attempt.number, "topic": attempt.topic, "letters": attempt.letters}
        write_record(
            self.path,
            {"name": self.name, "sent": self.sent, "number": self.number, "pending": pending},
        )


def state_of(place: str) -> Path:
    """Where the file lies for letters of a place, unless the user says: beside the directory, or in the project."""
    address = address_of(place)
    if isinstance(address, Path):
        found = address.absolute()
        return found.with_name(f"{found.name}.replayed.json")
    name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{address.bootstrap}-{address.topic}")
    return Path(".headrace", "dlq", f"{name}.json")


def memory_told(file: Path, *, was_known: bool) -> str:
    """Which file a replay went by: for a topic it hangs on the directory and on how the brokers are written."""
    told = f"what is replayed is remembered in {file}"
    if was_known:
        return told
    return f"{told}\nthere was no such file, so nothing is known of earlier replays; --state names another one"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One replay at a time for a file."""
    make_directory(path.absolute().parent)
    lock = path.with_name(f".{path.name}.lock")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
