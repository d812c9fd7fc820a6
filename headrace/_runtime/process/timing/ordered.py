"""Rows in the order of their time: what comes too late is told apart, the rest waits for the watermark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace._graph.nodes import LATE, KeyedProcess
from headrace._runtime.arrivals import Arrivals
from headrace._runtime.operator import Moment
from headrace._runtime.process.caller import Call
from headrace._runtime.process.timing.waiting import Waiting, order_of
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState
from headrace._runtime.unfolded import TIMESTAMP

__all__ = ["Ordered"]


class Ordered:
    """The rows of a step that wait, of all its inputs with keys."""

    def __init__(self, node: KeyedProcess, state: ShardState) -> None:
        self._schemas = node.input_schemas
        self._late = node.output_schema(LATE)
        self._arrivals = Arrivals(state)
        self._waiting = [Waiting(node, side, state) for side, keys in enumerate(node.keys) if keys]

    def take(self, batch: pa.RecordBatch, side: int, watermark: int) -> Rows | None:
        """Let rows wait; those that come behind the watermark are returned as they were."""
        stamps = batch.column(TIMESTAMP).to_numpy()
        early = stamps > watermark
        self._waiting[side].put(batch.filter(pa.array(early)), watermark)
        if early.all():
            return None
        late = batch.filter(pa.array(~early))
        own = self._schemas[side].names
        arrays = [
            late.column(field.name).cast(field.type)
            if field.name in own
            else pa.nulls(late.num_rows, field.type)
            for field in self._late
        ]
        return Rows(pa.RecordBatch.from_arrays(arrays, schema=self._late), stamps[~early])

    def due(self, moment: Moment) -> dict[int, pa.RecordBatch]:
        """By input, the rows that the watermark passes now."""
        found = {
            side: waiting.due(moment.before, moment.watermark)
            for side, waiting in enumerate(self._waiting)
        }
        return {side: batch for side, batch in found.items() if batch is not None}

    def calls(
        self, due: Mapping[int, pa.RecordBatch], codes: Mapping[int, Sequence[int]],
        objects: Callable[[pa.RecordBatch, int], list[Any]], methods: Sequence[Any],
    ) -> Iterator[Call]:  # fmt: skip
        """The calls for these rows, in their order."""
        rows = {side: objects(batch, side) for side, batch in due.items()}
        stamps = {side: batch.column(TIMESTAMP).to_pylist() for side, batch in due.items()}
        sides, places = order_of(dict(due))
        for side, place in zip(sides.tolist(), places.tolist(), strict=True):
            row, code, stamp = rows[side][place], codes[side][place], stamps[side][place]
            yield methods[side], due[side], place, row, code, stamp

    def next(self, reached: int, fires_at: int | None, keys: int) -> tuple[int | None, int]:
        """The next thing to happen: the next timer, with how many there are, or the next row."""
        firsts = [waiting.next(reached) for waiting in self._waiting]
        first = min((time for time in firsts if time is not None), default=None)
        if first is None or (fires_at is not None and fires_at <= first):
            return fires_at, keys
        return first, 1

    def forget(self, reached: int) -> None:
        """Drop what has come."""
        for waiting in self._waiting:
            waiting.forget(reached)
        if all(waiting.is_over() for waiting in self._waiting):
            self._arrivals.forget()
