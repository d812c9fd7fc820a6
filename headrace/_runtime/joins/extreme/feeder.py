"""The half before the shuffle: of the rows of a key and window only those with the best value so far are sent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import WindowExtreme
from headrace._graph.nodes import ERRORS
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.joins.window.feeder import WindowJoinFeeder
from headrace._runtime.operator import Outputs
from headrace._runtime.plain_keys import number_keys
from headrace._runtime.rows import Rows
from headrace._runtime.state.columns import to_numpy
from headrace._runtime.unfolded import TIMESTAMP

__all__ = ["ExtremeFeeder", "best_of", "values_in"]

Integers = npt.NDArray[np.int64]


class ExtremeFeeder(WindowJoinFeeder):
    """Sends the best rows of one task."""

    def __init__(self, node: WindowExtreme, side: int) -> None:
        super().__init__(node, side)
        self._extreme = node

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those without a key or a value, and late ones."""
        rows, dead = split_null_keys(rows, self._node.uid, (self._extreme.column,))
        if dead is not None:
            yield ERRORS, dead
        yield from super().feed(rows, watermark)

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What was fed and was not beaten."""
        for batch in super().flush():
            keys = [*self._side.key_columns(batch), batch.column(TIMESTAMP)]
            codes, firsts = number_keys(keys)
            values = values_in(self._extreme, batch)
            best = best_of(codes, values, len(firsts))
            yield batch.take(pa.array(np.flatnonzero(values == best[codes])))


def values_in(node: WindowExtreme, batch: pa.RecordBatch) -> Integers:
    """The values of sent rows as numbers of which the greatest is the best."""
    column = batch.column(node.column)
    numbers: Integers = to_numpy(column, column.type).astype(np.int64)
    # The complement turns the order round, the least number too.
    return numbers if node.greatest else ~numbers


def best_of(codes: Integers, values: Integers, many: int) -> Integers:
    """The best value of each of so many keys."""
    best = np.full(many, np.iinfo(np.int64).min)
    np.maximum.at(best, codes, values)
    return best
