"""The code of joins whose windows the row engine keeps: sessions, windows of the user's own, windows of the clock.

Rows of both sides go through one window step. A *tagged* row says which side it is of and has its columns in one value,
beside the columns of the key, so that rows of one key meet whatever else they are made of:

    side    key_0 ...    null_key    left                 right          gap
    0       7            null        {id: 7, price: 5}    null           0:10:00
    1       7            null        null                 {order: 7}     0:01:00

A row of a preserved side that has no key is alone in its windows. It goes through a step of its own, under a key made of
all that it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._graph.join_nodes import WindowJoin
from headrace._graph.nodes import ERRORS_SCHEMA
from headrace._runtime.expressions import evaluate
from headrace._runtime.joins.results import null_keys
from headrace._runtime.joins.window.joining import Joining, Span
from headrace._runtime.payload import as_json
from headrace._runtime.plain_keys import plain_key, plain_key_type
from headrace._runtime.unfolded import join_batches, plain_columns
from headrace.expressions import Expression, col
from headrace.functions import ProcessWindowFunction
from headrace.state import Value
from headrace.windows import TimeWindow, WindowAssigner
from headrace.windows.assigner import TimeDomain

__all__ = [
    "NULL_KEY", "Alone", "AsItCame", "CoGroup", "GapOfSide", "Letters", "OfSide", "Pairs", "ShownBefore",
    "Tag", "Tagging", "count_null_key",
]  # fmt: skip

NULL_KEY = "null_key"
_SIDES = ("left", "right")
_GAP = pa.field("gap", pa.duration("us"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Tagging:
    """What tagged rows look like."""

    schemas: tuple[pa.Schema, pa.Schema]
    keys: tuple[tuple[str, ...], tuple[str, ...]]
    #: The gap of a row's session, where it is computed from columns.
    gap: str | Expression | None = None

    @property
    def key_names(self) -> list[str]:
        """The columns of the key."""
        return [f"key_{place}" for place in range(len(self.keys[0]))]

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return pa.schema(
            [
                pa.field("side", pa.int8()),
                *(
                    pa.field(name, plain_key_type(self.schemas[0].field(mine).type))
                    for name, mine in zip(self.key_names, self.keys[0], strict=True)
                ),
                pa.field(NULL_KEY, pa.int64()),
                *(pa.field(name, self.inside(side)) for side, name in enumerate(_SIDES)),
                *([] if self.gap is None else [_GAP]),
            ]
        )

    def inside(self, side: int) -> pa.DataType:
        """The columns of one side as one value."""
        return pa.struct(list(plain_columns(self.schemas[side], self.schemas[side].names)))


@dataclass(frozen=True)
class Tag:
    """Tags the rows of one side; `preserved`: those without a key are to be seen."""

    tagging: Tagging
    side: int
    preserved: bool

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The tagged rows."""
        schema, count = self.tagging.schema, batch.num_rows
        inside = self.tagging.inside(self.side)
        plain = [column.cast(f.type) for column, f in zip(batch.columns, inside, strict=True)]
        columns: dict[str, pa.Array] = {
            "side": pa.array(np.full(count, self.side, np.int8)),
            NULL_KEY: self._null_keys(batch),
            _SIDES[self.side]: pa.StructArray.from_arrays(plain, fields=list(inside)),
        }
        for name, mine in zip(self.tagging.key_names, self.tagging.keys[self.side], strict=True):
            columns[name] = plain_key(batch.column(mine))
        gap = self.tagging.gap
        if gap is not None:
            found = evaluate(col(gap) if isinstance(gap, str) else gap, batch)
            columns[_GAP.name] = found.cast(_GAP.type, safe=False)
        arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _null_keys(self, batch: pa.RecordBatch) -> pa.Array:
        null = null_keys(batch, self.tagging.keys[self.side]) if self.preserved else None
        if null is None:
            return pa.nulls(batch.num_rows, pa.int64())
        numbers = np.zeros(batch.num_rows, np.int64)
        numbers[null] = [_digest(text) for text in as_json(batch.filter(pa.array(null)))]
        return pa.array(numbers, mask=~null)


@dataclass(frozen=True)
class AsItCame:
    """Tagged rows of one side as they were before."""

    schema: pa.Schema
    side: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows."""
        columns = batch.column(_SIDES[self.side]).flatten()
        cast = [column.cast(f.type) for column, f in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(cast, schema=self.schema)


@dataclass(frozen=True)
class Letters:
    """Dead letters of tagged rows as those of the rows."""

    tagging: Tagging

    def __call__(self, letters: pa.RecordBatch) -> pa.RecordBatch:
        """The letters."""
        causes, payloads = [], []
        names = ("cause", "payload")
        for cause, payload in zip(*(letters.column(n).to_pylist() for n in names), strict=True):
            tagged = json.loads(payload)
            side = tagged["side"]
            for name, mine in zip(self.tagging.key_names, self.tagging.keys[side], strict=True):
                cause = cause.replace(f"'{name}'", f"'{mine}'")  # noqa: PLW2901 - said better
            causes.append(cause)
            payloads.append(json.dumps(tagged[_SIDES[side]], ensure_ascii=False))
        told = {"cause": pa.array(causes, pa.string()), "payload": pa.array(payloads, pa.string())}
        arrays = [told.get(name, letters.column(name)) for name in ERRORS_SCHEMA.names]
        return pa.RecordBatch.from_arrays(arrays, schema=ERRORS_SCHEMA)


def count_null_key(row: Any, ctx: Any) -> Iterator[Any]:
    """A row without a key passes."""
    ctx.metrics.counter("null_keys").inc()
    yield row


class OfSide(WindowAssigner):
    """Windows of the user's own, which are told of the row and not of the tagged one."""

    def __init__(self, assigner: WindowAssigner) -> None:
        self._assigner = assigner
        self.time: TimeDomain = assigner.time

    @property
    def name(self) -> str:
        """That of the user's."""
        return self._assigner.name

    def assign(self, row: Any, timestamp: datetime) -> Iterable[tuple[datetime, datetime]]:
        """The windows of the row."""
        return self._assigner.assign(row.right if row.side else row.left, timestamp)


@dataclass(frozen=True)
class GapOfSide:
    """A gap by a function of the user's, which is told of the row and not of the tagged one."""

    function: Callable[[Any], timedelta]

    def __call__(self, row: Any) -> timedelta:
        """The gap of the row."""
        return self.function(row.right if row.side else row.left)


class ShownBefore(ProcessWindowFunction):
    """What is remembered of a window that may fire again: how many of its rows were there the last time."""

    rows: Value[int]

    def process(self, key: Any, context: Any, rows: Sequence[Any]) -> Iterable[Any]:
        """Not called: rows are given as columns, to `Pairs`."""
        raise NotImplementedError


class Pairs:
    """The results of one window of one key, or what rows that came late add to them."""

    def __init__(self, join: WindowJoin) -> None:
        self._join = join
        self._joining = Joining(join)
        self._late = join.lateness_us > 0

    def __call__(self, batch: pa.RecordBatch, context: Any) -> pa.RecordBatch:
        """The results."""
        of_right = batch.column("side").to_numpy() == 1
        known = self._known(batch.num_rows, context)
        old = int((~of_right[:known]).sum()), int(of_right[:known].sum())
        rows = [_inside(batch, _SIDES[side], of_right == bool(side)) for side in (0, 1)]
        # All rows have the same key: that of the window.
        keys = [[pa.array(np.zeros(mine.num_rows, np.int8))] for mine in rows]
        made = self._joining.results(_span(context.window), rows, keys, old)
        return join_batches([self._nothing(), *(each.batch for each in made)])

    def _known(self, rows: int, context: Any) -> int:
        if not self._late:
            return 0
        before = context.window_state.rows.value() or 0
        context.window_state.rows.update(rows)
        return before

    def _nothing(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self._join.schema)


class Alone:
    """The results of rows without a key."""

    def __init__(self, join: WindowJoin) -> None:
        self._joining = Joining(join)

    def __call__(self, batch: pa.RecordBatch, context: Any) -> pa.RecordBatch:
        """Each is alone."""
        of_right = batch.column("side").to_numpy() == 1
        rows = [_inside(batch, _SIDES[side], of_right == bool(side)) for side in (0, 1)]
        span = _span(context.window)
        made = [self._joining.alone(span, side, mine) for side, mine in enumerate(rows)]
        return join_batches([each.batch for each in made if len(each)])


class CoGroup(ProcessWindowFunction):
    """Calls a user's function with the rows of both sides."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def process(self, key: Any, context: Any, rows: Sequence[Any]) -> Iterable[Any]:
        """What the function makes of them."""
        left = [row.left for row in rows if row.side == 0]
        right = [row.right for row in rows if row.side == 1]
        made: Iterable[Any] = self._function(key, context.window, left, right)
        return made


def _inside(batch: pa.RecordBatch, name: str, mask: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(batch.column(name).filter(pa.array(mask)))


def _span(window: TimeWindow) -> Span:
    start, end = ((bound - _EPOCH) // _MICROSECOND for bound in (window.start, window.end))
    return start, end


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)
