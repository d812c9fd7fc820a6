"""Rows from a list, for tests, notebooks and small look-up streams.

The rows travel to the workers with the plan. Marks between them end an epoch or make a read fail, so a
test of a crash is a list.
"""

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.connectors.memory.columns import columns_of, schema_of
from headrace.connectors.memory.markers import Cut, Fail
from headrace.endpoints import Enumerator, Json, Source, SourceBatch, Span
from headrace.errors import BuildError, EngineError, SchemaError
from headrace.schema import as_schema

__all__ = ["MemorySource"]

_BATCH_ROWS = 32_768
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class MemorySource(Source):
    """The rows of a list, a `pyarrow.Table`, or of several lists as `partitions`.

    `schema` is a dataclass, a `TypedDict`, a mapping or an Arrow schema; without it the rows' own
    dataclass counts, or what Arrow makes of dictionaries. `timestamps` are the records' own, for
    `with_record_timestamps`: an aware datetime for each row, marks not counted; with partitions, a list of
    them for each. `bounded=False` never says that it ends.

        MemorySource([Order(1, now), Cut(), Order(2, now)])
    """

    def __init__(
        self,
        rows: Sequence[Any] | pa.Table | None = None,
        schema: Any = None,
        *,
        partitions: Sequence[Sequence[Any] | pa.Table] | None = None,
        timestamps: Sequence[Any] | None = None,
        bounded: bool = True,
    ) -> None:
        if (rows is None) == (partitions is None):
            raise BuildError("a memory source takes either rows or partitions=")
        parts = [_listed(part) for part in ([rows] if partitions is None else partitions)]
        self._schema = _found_schema(parts) if schema is None else as_schema(schema)
        self._lines = {str(place): _line(part, self._schema) for place, part in enumerate(parts)}
        self._records = _records(
            [timestamps] if partitions is None and timestamps is not None else timestamps,
            self._lines,
        )
        self.has_record_timestamps = timestamps is not None
        self._bounded = bounded

    @property
    def schema(self) -> pa.Schema:
        """The declared or found columns."""
        return self._schema

    def signature(self) -> dict[str, Json]:
        """How many lists there are; their author sees to it that rows keep their places."""
        return {"source": "memory", "partitions": len(self._lines)}

    def enumerator(self, directory: Path) -> Enumerator:
        """All rows are there."""
        return _MemoryEnumerator(
            {
                name: Span(0, line.batch.num_rows, finished=self._bounded, cuts=line.cuts)
                for name, line in self._lines.items()
            }
        )

    def narrowed(self, columns: Sequence[str], *, timestamps: bool) -> "MemorySource":
        """Only what is looked at travels to the workers; so every test with a list also shows that it is enough."""
        found = copy.copy(self)
        kept = [name for name in self._schema.names if name in columns] or self._schema.names[:1]
        lines = {n: replace(line, batch=line.batch.select(kept)) for n, line in self._lines.items()}
        schema = pa.schema([self._schema.field(name) for name in kept])
        records = self._records if timestamps else {}
        vars(found).update(_lines=lines, _schema=schema, _records=records)
        return found

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        """A slice, unless a mark in it says that this read fails."""
        line = self._lines[partition]
        for place, fail in line.fails:
            if start <= place < end:
                _fail(fail, directory / f"failed-{partition}-{place}")
        for first in range(start, end, _BATCH_ROWS):
            last = min(first + _BATCH_ROWS, end)
            offsets = np.arange(first, last, dtype=np.int64)
            records = self._records.get(partition)
            yield SourceBatch(
                line.batch.slice(first, last - first),
                offsets,
                partition,
                timestamps=None if records is None else records[first:last],
            )


@dataclass(frozen=True, slots=True)
class _Line:
    """One partition: rows, the positions of cuts, and the rows whose reading fails."""

    batch: pa.RecordBatch
    cuts: tuple[int, ...]
    fails: tuple[tuple[int, Fail], ...]


class _MemoryEnumerator(Enumerator):
    def __init__(self, spans: Mapping[str, Span]) -> None:
        self._spans = spans

    def spans(self) -> Mapping[str, Span]:
        return self._spans


def _listed(rows: Any) -> Sequence[Any] | pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, str | Mapping) or not isinstance(rows, Sequence):
        raise BuildError(f"the rows of a memory source are a list, not {type(rows).__name__}")
    return rows


def _found_schema(parts: Sequence[Any]) -> pa.Schema:
    tables = [part for part in parts if isinstance(part, pa.Table)]
    if tables:
        return as_schema(tables[0].schema)
    return schema_of([row for part in parts for row in part if not isinstance(row, Cut | Fail)])


def _line(entries: Any, schema: pa.Schema) -> _Line:
    if isinstance(entries, pa.Table):
        return _Line(_one_batch(entries, schema), (), ())
    rows: list[Any] = []
    cuts: list[int] = []
    fails: list[tuple[int, Fail]] = []
    for entry in entries:
        if isinstance(entry, Cut):
            cuts.append(len(rows))
        elif isinstance(entry, Fail):
            fails.append((len(rows), entry))
        else:
            rows.append(entry)
    last = max(len(rows) - 1, 0)
    inside = tuple(cut for cut in dict.fromkeys(cuts) if 0 < cut < len(rows))
    at_rows = tuple((min(place, last), fail) for place, fail in fails)
    return _Line(columns_of(rows, schema), inside, at_rows)


def _records(
    timestamps: Sequence[Any] | None, lines: Mapping[str, _Line]
) -> dict[str, npt.NDArray[np.int64]]:
    """The records' own timestamps by partition, in microseconds."""
    if timestamps is None:
        return {}
    if len(timestamps) != len(lines):
        raise BuildError(
            f"timestamps= takes a list for each of the {len(lines)} partitions, not {len(timestamps)}"
        )
    found = {}
    for (name, line), moments in zip(lines.items(), timestamps, strict=True):
        if len(moments) != line.batch.num_rows:
            raise BuildError(
                f"timestamps= takes one for each row: partition {name} has {line.batch.num_rows} rows and"
                f" {len(moments)} timestamps"
            )
        found[name] = np.array([_instant_us(moment) for moment in moments], np.int64)
    return found


def _instant_us(moment: Any) -> int:
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise BuildError(f"timestamps= takes datetimes with a time zone, not {moment!r}")
    return (moment - _EPOCH) // _MICROSECOND


def _one_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    try:
        batches = table.cast(schema).combine_chunks().to_batches()
    except (ValueError, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"the table does not have the columns of schema=: {error}") from error
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema)


def _fail(fail: Fail, trace: Path) -> None:
    """Raise until it happened often enough; every process of the host counts in the same files."""
    for time in range(fail.times):
        try:
            os.close(os.open(f"{trace}-{time}", os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            continue
        raise EngineError(fail.message)
