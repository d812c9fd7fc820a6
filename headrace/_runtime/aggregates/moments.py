"""`variance` and `stddev`: count, mean and the sum of squared distances from it, merged by Chan's formula."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots
from headrace._runtime.state import ValueSpec

__all__ = ["Variance"]


class Variance(Fold):
    """Never the difference of two large sums, so it stays exact for values far from 0."""

    def __init__(self, name: str, column: str, *, ddof: int, root: bool) -> None:
        self._column = column
        self._ddof = ddof
        self._root = root
        self._count, self._mean, self._spread = (f"{name}.{p}" for p in ("count", "mean", "spread"))
        self.reads = (column,)
        self.columns = (
            ValueSpec(self._count, pa.int64(), 0),
            ValueSpec(self._mean, pa.float64(), 0),
            ValueSpec(self._spread, pa.float64(), 0),
        )
        self.parts = tuple(pa.field(spec.name, spec.type) for spec in self.columns)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow computes all three."""
        column = flush.columns[self._column].cast(pa.float64(), safe=False)
        return tuple(Request(column, name) for name in ("count", "mean", "variance"))

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The variance of the population times the count is the sum of squares."""
        counts, means, variances = folded
        spreads = pc.multiply(variances, counts.cast(pa.float64()))
        return (counts, pc.fill_null(means, 0.0), pc.fill_null(spreads, 0.0))

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Chan's formula for two sets at once."""
        count, mean, spread = (part.to_numpy() for part in parts)
        counts, means, spreads = (into.values(spec.name) for spec in self.columns)
        before = counts[slots]
        total = before + count
        share = count / np.maximum(total, 1)
        # Without rows on one side its mean is 0 by convention and must not count as a distance.
        distance = np.where((before > 0) & (count > 0), mean - means[slots], 0.0)
        means[slots] = np.where(before == 0, mean, means[slots] + distance * share)
        spreads[slots] += spread + distance * distance * before * share
        counts[slots] = total

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """All three."""
        return tuple(pa.array(source.get(spec.name, slots)) for spec in self.columns)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """Null where there are not more rows than `ddof`."""
        freedom = source.get(self._count, slots) - self._ddof
        variance = source.get(self._spread, slots) / np.maximum(freedom, 1)
        return pa.array(np.sqrt(variance) if self._root else variance, mask=freedom <= 0)
