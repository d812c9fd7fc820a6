"""Count windows that are full: their keys, their numbers and what the folds say of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.nodes import CountAggregate
from headrace._runtime.rows import Rows
from headrace._runtime.windows.results import ON_TIME, result_rows

__all__ = ["EMIT_ROWS", "Fired"]

#: Result rows in a batch at most.
EMIT_ROWS = 131_072


@dataclass(frozen=True)
class Fired:
    """Some windows. The last of the values is the greatest timestamp of the rows, null if they have none."""

    keys: Sequence[pa.Array]
    firings: npt.NDArray[np.int64]
    values: Sequence[pa.Array]

    def rows(self, node: CountAggregate, clock: int) -> Iterator[Rows]:
        """The results. Where rows had no timestamps theirs is the clock."""
        *values, latest = self.values
        timestamps = pc.fill_null(latest, clock).to_numpy()
        for start in range(0, len(self.firings), EMIT_ROWS):
            part = slice(start, start + EMIT_ROWS)
            yield result_rows(
                node,
                [key[part] for key in self.keys],
                [value[part] for value in values],
                starts=0,
                ends=timestamps[part] + 1,
                panes=ON_TIME,
                firings=self.firings[part],
            )
