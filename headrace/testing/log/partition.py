"""A partition of the log: records and the marks of ended transactions, each at its own offset.

Offsets never move. A mark takes an offset in every partition that its transaction wrote to and is never read. A reader
of committed records sees nothing from the first record of an open transaction on, not even records of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Content", "Entry", "Outcome", "Partition", "Transaction"]

Outcome = Literal["committed", "aborted"]
Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Content:
    """What a producer sends."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[Header] | None = None
    #: Milliseconds since 1970.
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at an offset; without content it is a mark."""

    offset: int
    content: Content | None
    transaction: Transaction | None


@dataclass(eq=False)
class Transaction:
    """Records that are seen together or not at all."""

    outcome: Outcome | None = None
    _partitions: list[Partition] = field(default_factory=list)

    def enlist(self, partition: Partition) -> None:
        """It writes to this partition too."""
        if partition not in self._partitions:
            self._partitions.append(partition)

    def touches(self, partition: Partition) -> bool:
        """Whether it wrote there."""
        return partition in self._partitions

    def end(self, outcome: Outcome) -> None:
        """Write the marks; a transaction ends once."""
        if self.outcome is None:
            self.outcome = outcome
            for partition in self._partitions:
                partition.mark(self)


@dataclass(eq=False)
class Partition:
    """Entries by offset. `first` is the oldest that is still there."""

    first: int = 0
    _entries: list[Entry] = field(default_factory=list)
    #: Where each open transaction begins.
    _open: dict[Transaction, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """One past the last offset."""
        return len(self._entries)

    def limit(self, *, committed_only: bool) -> int:
        """Where a reader has to stop; for committed records the last stable offset."""
        return min([self.end, *self._open.values()]) if committed_only else self.end

    def append(self, content: Content, transaction: Transaction | None = None) -> int:
        """Add a record; its offset."""
        offset = self.end
        if transaction is not None:
            transaction.enlist(self)
            self._open.setdefault(transaction, offset)
        self._entries.append(Entry(offset, content, transaction))
        return offset

    def mark(self, transaction: Transaction) -> None:
        """Note that a transaction has ended."""
        self._entries.append(Entry(self.end, None, transaction))
        self._open.pop(transaction, None)

    def visible(self, start: int, *, committed_only: bool) -> Iterator[tuple[int, Content]]:
        """The records from `start` on that a reader gets, with their offsets."""
        limit = self.limit(committed_only=committed_only)
        for entry in self._entries[max(start, self.first) : limit]:
            if entry.content is None:
                continue
            aborted = entry.transaction is not None and entry.transaction.outcome == "aborted"
            if not (committed_only and aborted):
                yield entry.offset, entry.content

    def since(self, at_ms: int) -> int:
        """The first record of that time or later; -1: there is none."""
        for offset, content in self.visible(0, committed_only=False):
            if content.at_ms >= at_ms:
                return offset
        return -1
