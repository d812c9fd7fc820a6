"""What a cluster of brokers keeps: topics, transactional ids with their epochs, offsets of groups.

One lock guards all of it; each request is one step. An older producer of a transactional id is refused from the moment
that a newer one initialises, and what it had open is aborted then.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from headrace.testing.log.faults import Faults, Killed, Request, failure
from headrace.testing.log.partition import Content, Outcome, Partition, Transaction

__all__ = ["Broker", "Place", "Topic"]

#: Topic and partition.
Place = tuple[str, int]
_Answer = TypeVar("_Answer")


@dataclass
class Topic:
    """A topic. Its id is another one if it is removed and made again."""

    partitions: list[Partition]
    settings: Mapping[str, str]
    #: As it was asked for; -1 leaves the number of copies to the brokers.
    replication: int = -1
    id: uuid.UUID = field(default_factory=uuid.uuid4)


@dataclass
class _Owner:
    """A transactional id: which producer has it, and what that one has open."""

    epoch: int = -1
    transaction: Transaction | None = None


@dataclass
class _Ending:
    """A transaction whose outcome is decided and whose marks are not written yet."""

    transaction: Transaction
    outcome: Outcome
    #: So often readers have to wait for it.
    waits: int


class Broker:
    """All state of a log. `lag` is how often readers wait until they see that a transaction has ended."""

    def __init__(self, lag: int = 0) -> None:
        self.topics: dict[str, Topic] = {}
        self.groups: dict[str, dict[Place, int]] = {}
        self.faults = Faults()
        self.away = False
        #: Producers of an earlier one are dead.
        self.generation = 0
        self.lock = threading.RLock()
        self._lag = lag
        self._owners: dict[str, _Owner] = {}
        self._endings: list[_Ending] = []

    def ask(self, request: Request, action: Callable[[], _Answer]) -> _Answer:
        """Answer a client's request, with what a test wants to happen around it."""
        if self.away:
            raise failure("_TIMED_OUT", "no broker answers")
        self.faults.reach(request, "before")
        with self.lock:
            answer = action()
        self.faults.reach(request, "after")
        return answer

    def kill(self) -> None:
        """Kill the process of every producer that is open now."""
        with self.lock:
            self.generation += 1
        raise Killed("the test killed this producer")

    def partition(self, place: Place) -> Partition:
        """A partition, or the library's error."""
        topic = self.topics.get(place[0])
        if topic is None:
            raise failure("UNKNOWN_TOPIC_OR_PART")
        if not 0 <= place[1] < len(topic.partitions):
            raise failure("_UNKNOWN_PARTITION")
        return topic.partitions[place[1]]

    def create(
        self, name: str, partitions: int, settings: Mapping[str, str], replication: int = -1
    ) -> None:
        """Make a topic."""
        if name in self.topics:
            raise failure("TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists.")
        self.topics[name] = Topic(
            [Partition() for _ in range(partitions)], dict(settings), replication
        )

    def take_over(self, name: str) -> int:
        """Give a transactional id to a new producer: its epoch. What the older one had open is aborted."""
        owner = self._owners.setdefault(name, _Owner())
        self._abort(owner)
        owner.epoch += 1
        return owner.epoch

    def append(self, place: Place, content: Content, name: str | None, epoch: int) -> None:
        """Add a producer's record, in its transaction if it has a transactional id."""
        partition = self.partition(place)
        if name is None:
            partition.append(content)
            return
        owner = self._owned(name, epoch)
        if owner.transaction is not None and self._is_ending(owner.transaction):
            self._finish(owner.transaction)
            owner.transaction = None
        if owner.transaction is None:
            owner.transaction = Transaction()
        partition.append(content, owner.transaction)

    def end(self, name: str, epoch: int, outcome: Outcome) -> None:
        """Commit or abort what a producer has open; once more is no error."""
        owner = self._owned(name, epoch)
        if owner.transaction is not None and not self._is_ending(owner.transaction):
            self.end_later(owner.transaction, outcome, self._lag)

    def end_later(self, transaction: Transaction, outcome: Outcome, waits: int) -> None:
        """Decide a transaction; readers see it when they have waited so often."""
        if waits:
            self._endings.append(_Ending(transaction, outcome, waits))
        else:
            transaction.end(outcome)

    def expire(self) -> None:
        """Abort what producers have open, as after `transaction.timeout.ms`; they are fenced."""
        for owner in self._owners.values():
            if owner.transaction is not None and owner.transaction.outcome is None:
                self._abort(owner)
                owner.epoch += 1

    def waited(self, place: Place) -> None:
        """A reader of this partition found nothing new."""
        partition = self.partition(place)
        for ending in [one for one in self._endings if one.transaction.touches(partition)]:
            ending.waits -= 1
            if not ending.waits:
                self._finish(ending.transaction)

    def _owned(self, name: str, epoch: int) -> _Owner:
        owner = self._owners[name]
        if owner.epoch != epoch:
            words = "This instance has been fenced by a newer instance"
            raise failure("_FENCED", words, fatal=True)
        return owner

    def _abort(self, owner: _Owner) -> None:
        if owner.transaction is not None:
            self._finish(owner.transaction)
            owner.transaction.end("aborted")
            owner.transaction = None

    def _is_ending(self, transaction: Transaction) -> bool:
        return transaction.outcome is not None or any(
            one.transaction is transaction for one in self._endings
        )

    def _finish(self, transaction: Transaction) -> None:
        """Write the marks of a transaction that is decided."""
        for ending in [one for one in self._endings if one.transaction is transaction]:
            self._endings.remove(ending)
            transaction.end(ending.outcome)
