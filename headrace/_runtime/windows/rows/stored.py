"""The rows of a cell that lie in state: where, and once they are read, their places in the pool."""

from __future__ import annotations

__all__ = ["NOTHING", "Stored"]


class Stored:
    """Segments of a cell. A part is a start, a last microsecond and how many segments lie under them."""

    __slots__ = ("parts", "places", "slot")

    def __init__(self, slot: int, parts: list[list[int]]) -> None:
        #: A slot of the same key in the table of cells.
        self.slot = slot
        self.parts = parts
        self.places: list[int] | None = None if self.segments else []

    @property
    def segments(self) -> int:
        """How many there are."""
        return sum(part[2] for part in self.parts)


#: Of cells that keep no rows.
NOTHING = Stored(-1, [])
