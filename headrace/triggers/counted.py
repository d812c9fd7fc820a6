"""Triggers that count rows, and the one that never fires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.errors import BuildError
from headrace.triggers.builtin import BuiltIn, Inside, Slot
from headrace.triggers.trigger import TriggerResult

__all__ = ["CountRows", "Never", "count", "never", "number_of_rows"]

_SEEN = 0


@dataclass(frozen=True)
class CountRows(BuiltIn):
    """Every so many rows, at once."""

    slots: ClassVar[tuple[Slot, ...]] = (Slot("seen"),)
    rows: int

    def start(self, context: Inside) -> None:
        """From zero."""
        context.set(_SEEN, 0)

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        """One more."""
        seen = context.get(_SEEN) + 1
        if seen < self.rows:
            context.set(_SEEN, seen)
            return TriggerResult.CONTINUE
        context.set(_SEEN, 0)
        return TriggerResult.FIRE

    def on_merge(self, window: Any, context: Any) -> None:
        """All rows count."""
        context.set(_SEEN, sum(context.of_parts(_SEEN)))

    @property
    def name(self) -> str:
        """As it is written."""
        return f"count({self.rows})"


@dataclass(frozen=True)
class Never(BuiltIn):
    """Nothing makes it fire."""

    @property
    def name(self) -> str:
        """As it is written."""
        return "never()"


def count(rows: int) -> CountRows:
    """Fire at every so many rows of a key and window, as soon as they are there.

    >>> count(100).name
    'count(100)'
    """
    return CountRows(number_of_rows(rows, "triggers.count"))


def never() -> Never:
    """Never fire. Beside others it is of use: `never().or_finally(count(100))` fires once."""
    return Never()


def number_of_rows(rows: object, where: str) -> int:
    """A number of rows that can be counted to."""
    if type(rows) is not int or rows < 1:
        raise BuildError(f"{where} takes a whole number of rows, 1 or more, not {rows!r}.")
    return rows
