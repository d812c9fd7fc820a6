"""The rows of a checked job, and the judgement of what became of them.

Every attempt at an epoch has rows of its own, which no other attempt of any scenario has: a row that should not be seen is
told from one that should. The judgement knows the commits of a checkpoint and what is visible outside, and nothing of how
one became the other.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, TypeAlias

import pyarrow as pa

__all__ = ["EPOCHS", "TASKS", "UIDS", "Expectation", "MakeRow", "Script", "Visible", "example_row"]

#: Two sinks in one job, as names of one must not be mistaken for those of the other.
UIDS = ("orders", "orders-late")
#: Rows of an epoch for one sink and one task; one epoch has none.
EPOCHS = (3, 4, 0, 3)
TASKS = 2

MakeRow: TypeAlias = Callable[[int], Mapping[str, Any]]
_Place = tuple[str, int, int]


def example_row(number: int) -> dict[str, Any]:
    """A row that is unlike all others, with what is easily lost on the way."""
    notes = (None, "", 'it\'s "quoted", and\na line', "søk 例え 🚰")
    return {"key": f"k{number % 5}", "number": number, "note": notes[number % 4]}


def _first_number() -> int:
    """Another one in each check, as a table may hold the rows of the last; small enough for 32 bits."""
    return int(time.time()) % 100_000 * 20_000


@dataclass
class Visible:
    """What can be seen outside at one moment: numbers of rows in the order in which they were read."""

    numbers: list[int]
    strangers: int


@dataclass
class Script:
    """Makes rows and remembers them."""

    make: MakeRow
    key: str | None
    schema: pa.Schema
    _numbers: Iterator[int] = field(default_factory=lambda: count(_first_number()))
    _rows: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    _known: dict[str, int] = field(default_factory=dict)

    def draw(self, rows: int, task: int) -> list[int]:
        """New rows for a task. A key belongs to one task, as it does in a job."""
        tried = islice(self._numbers, 100 * rows)  # keys may be so few that a task has none of them
        fitting = (number for number in tried if self._task_of(number) == task)
        return list(islice(fitting, rows))

    def batch(self, numbers: Iterable[int]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(
            [dict(self._rows[number]) for number in numbers], self.schema
        )

    def see(self, rows: Any) -> Visible:
        """Which of the rows that were made these are."""
        listed = rows.to_pylist() if isinstance(rows, pa.Table | pa.RecordBatch) else rows
        found = [self._known.get(self._text(row)) for row in listed]
        numbers = [number for number in found if number is not None]
        return Visible(numbers, len(found) - len(numbers))

    def show(self, number: int) -> str:
        return str(dict(self._rows[number]))

    def key_of(self, number: int) -> Any:
        return None if self.key is None else self._rows[number][self.key]

    def _task_of(self, number: int) -> int:
        row = self._rows.setdefault(number, self.make(number))
        text = self._text(row)
        assert self._known.setdefault(text, number) == number, f"rows must differ: {row}"
        if self.key is None:
            return number % TASKS
        return sum(repr(row[self.key]).encode()) % TASKS

    def _text(self, row: Mapping[str, Any]) -> str:
        missing = [name for name in self.schema.names if name not in row]
        assert not missing, f"read() gave a row without {', '.join(missing)}: {dict(row)}"
        return repr([row[name] for name in self.schema.names])


@dataclass
class Expectation:
    """What a scenario staged, by sink, epoch and fence; and which of it is durable."""

    script: Script
    attempts: dict[_Place, list[int]] = field(default_factory=dict)
    #: Rows of tasks that were lost before their receipts were known.
    failed: list[int] = field(default_factory=list)
    durable: dict[int, int] = field(default_factory=dict)

    def draw(self, uid: str, epoch: int, fence: int, task: int) -> list[int]:
        numbers = self.script.draw(EPOCHS[epoch], task)
        self.attempts.setdefault((uid, epoch, fence), []).extend(numbers)
        return numbers

    def mine(self) -> set[int]:
        return {n for numbers in self.attempts.values() for n in numbers} | set(self.failed)

    def problems(self, visible: Visible, *, ordered: bool) -> list[str]:
        """Sentences about what is wrong with what is visible; empty when nothing is."""
        mine = self.mine()
        seen = [number for number in visible.numbers if number in mine]
        times = Counter(seen)
        expected = {
            number: (uid, epoch)
            for (uid, epoch, fence), numbers in self.attempts.items()
            if self.durable.get(epoch) == fence
            for number in numbers
            if number not in self.failed
        }
        found = [self._tell("lost", n, *expected[n]) for n in expected if not times[n]]
        if found and visible.strangers:
            told = (
                f"{visible.strangers} visible rows are none that were written: were they altered?"
            )
            found.insert(0, told)
        found += [
            self._tell(f"there {times[n]} times", n, *expected[n]) for n in expected if times[n] > 1
        ]
        found += [
            f"visible, though its epoch or attempt failed: {self.script.show(n)}"
            for n in times
            if n not in expected
        ]
        return found + (list(self._disorder(seen, expected)) if ordered else [])

    def early(self, visible: Visible, epoch: int, fence: int) -> list[str]:
        """Rows of an attempt that are visible although its epoch is not durable."""
        staged = {n for uid in UIDS for n in self.attempts.get((uid, epoch, fence), ())}
        return [
            f"visible before its epoch was durable: {self.script.show(number)}"
            for number in visible.numbers
            if number in staged
        ]

    def _disorder(self, seen: list[int], expected: dict[int, tuple[str, int]]) -> Iterator[str]:
        rank = {number: place for place, number in enumerate(sorted(expected))}
        last: dict[tuple[str, Any], int] = {}
        for number in seen:
            if number not in expected:
                continue
            line = (expected[number][0], self.script.key_of(number))
            before = last.get(line)
            if line[1] is not None and before is not None and rank[before] > rank[number]:
                yield self._tell(
                    f"behind a later row of key {line[1]!r}", number, *expected[number]
                )
            last[line] = number

    def _tell(self, what: str, number: int, uid: str, epoch: int) -> str:
        return f"{what}: {self.script.show(number)} of epoch {epoch}, sink {uid!r}"
