"""A source whose rows a user's function makes from their numbers.

The function must give the same rows for the same numbers at every call: replay depends on it. With
several partitions, blocks of rows are dealt out in turn, so that all partitions move on together.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.connectors.generator.dealing import DealtRows
from headrace.connectors.generator.options import check_at_least, check_rate_limit
from headrace.connectors.generator.pace import Clock, Everything, Paced, wall_clock_us
from headrace.endpoints import Enumerator, Json, Source, SourceBatch
from headrace.errors import BuildError, InputError

__all__ = ["Function"]

_BATCH_ROWS = 65_536
_BLOCK_ROWS = 8_192
_ENDLESS_ROWS = 2**40


@dataclass(frozen=True)
class Function(Source):
    """Rows made by `function(start, end)`: the record batch of the rows `[start, end)`.

    `rows=None` never ends. `rate_limit` is rows per second of wall clock.

        def squares(start: int, end: int) -> pa.RecordBatch:
            return pa.record_batch({"n": np.arange(start, end) ** 2})

        Function(pa.schema({"n": pa.int64()}), squares, rows=1_000)
    """

    declared: pa.Schema
    function: Callable[[int, int], pa.RecordBatch]
    rows: int | None = field(kw_only=True)
    partitions: int = field(default=1, kw_only=True)
    rate_limit: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse options that cannot work."""
        if not isinstance(self.declared, pa.Schema):
            raise BuildError(f"the schema must be a pyarrow.Schema, not {self.declared!r}")
        if not callable(self.function):
            raise BuildError(
                f"a function (start, end) -> RecordBatch is needed, not {self.function!r}"
            )
        if self.rows is not None:
            check_at_least("rows", self.rows, 0)
        check_at_least("partitions", self.partitions, 1)
        check_rate_limit(self.rate_limit)

    @property
    def schema(self) -> pa.Schema:
        """The declared columns."""
        return self.declared

    def signature(self) -> dict[str, Json]:
        """The way rows are dealt out; the function's body is its author's business."""
        return {"source": "function", "partitions": self.partitions}

    def enumerator(self, directory: Path, clock: Clock = wall_clock_us) -> Enumerator:
        """Count the rows that exist."""
        rows = _ENDLESS_ROWS if self.rows is None else self.rows
        limit = self.rate_limit
        pace = Everything(rows) if limit is None else Paced(rows, limit, directory, clock)
        return DealtRows(pace, rows, self.partitions, deal=_dealt, endless=self.rows is None)

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        """Call the function for each unbroken run of row numbers."""
        step = _BATCH_ROWS if self.partitions == 1 else _BLOCK_ROWS
        while start < end:
            stop = min(end, (start // step + 1) * step)
            first = start
            if self.partitions > 1:
                first += start // step * step * (self.partitions - 1) + int(partition) * step
            batch = self._made(first, first + stop - start)
            yield SourceBatch(batch, np.arange(start, stop, dtype=np.int64), partition)
            start = stop

    def _made(self, first: int, last: int) -> pa.RecordBatch:
        batch = self.function(first, last)
        if not isinstance(batch, pa.RecordBatch) or batch.num_rows != last - first:
            found = f"{batch.num_rows} rows" if isinstance(batch, pa.RecordBatch) else repr(batch)
            raise InputError(f"the function of a generator gave {found} for rows {first} to {last}")
        if not batch.schema.equals(self.declared):
            try:
                return batch.cast(self.declared)
            except (ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                message = f"the function of a generator gave other columns than declared: {error}"
                raise InputError(message) from error
        return batch


def _dealt(rows: int, partitions: int, place: int) -> int:
    """How many of `rows` rows, dealt out in blocks, the partition at this place got."""
    if partitions == 1:
        return rows
    rounds, rest = divmod(rows, _BLOCK_ROWS * partitions)
    return rounds * _BLOCK_ROWS + min(max(rest - place * _BLOCK_ROWS, 0), _BLOCK_ROWS)
