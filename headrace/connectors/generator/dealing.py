"""The partitions of a generator: rows that exist by now, dealt out to them."""

from collections.abc import Callable, Mapping

from headrace.connectors.generator.pace import Pace
from headrace.endpoints import Enumerator, Span

__all__ = ["Deal", "DealtRows"]

#: (rows, partitions, place) -> how many of the rows the partition at this place got
Deal = Callable[[int, int, int], int]


class DealtRows(Enumerator):
    """Counts the rows that exist and says how many each partition got."""

    def __init__(
        self, pace: Pace, rows: int, partitions: int, *, deal: Deal, endless: bool
    ) -> None:
        self._pace = pace
        self._rows = rows
        self._partitions = partitions
        self._deal = deal
        self._endless = endless

    def spans(self) -> Mapping[str, Span]:
        """Every partition begins at 0 and grows as rows come into being."""
        rows = self._pace.available()
        finished = rows == self._rows and not self._endless
        return {
            str(place): Span(0, self._deal(rows, self._partitions, place), finished=finished)
            for place in range(self._partitions)
        }
