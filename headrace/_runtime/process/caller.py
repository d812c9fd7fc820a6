"""The calls of one step in one epoch: row by row and timer by timer.

Where nobody asked for more, a call is no more than the call. With `on_error="dead_letter"` each is undone if it fails:
state and timers by the journal, results by how many there were; what it made is looked at one by one, because
a result that does not fit is a failure of its row. With a limit each call is watched.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import repeat
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import ERRORS, ERRORS_SCHEMA, KeyedProcess
from headrace._runtime.columns import rows_and_values
from headrace._runtime.payload import as_json, shown
from headrace._runtime.process.context import Context, instant
from headrace._runtime.process.cursor import Cursor, Journal
from headrace._runtime.process.feeder import OFFSET, PARTITION, SOURCE
from headrace._runtime.process.results import Output, Results
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import TIMESTAMP
from headrace._runtime.usercode import OURS, calling, cause_of
from headrace._runtime.watchdog import IDLE, Watch, watching
from headrace.errors import EngineError, UserCodeError

__all__ = ["Call", "Caller", "uncollected"]

_INSTANT = pa.timestamp("us", "UTC")

Method = Callable[[Any, Any], Any]
#: The method, the batch of the row and its place there, the row, the code of its key, its timestamp.
Call = tuple[Method, pa.RecordBatch, int, Any, int, int]


class Over:
    """Stands where the code of a key would when no call is being made."""

    def __init__(self, uid: str) -> None:
        self._uid = uid

    def __index__(self) -> NoReturn:
        raise UserCodeError(
            f"The code of step '{self._uid}' uses its context or its state when no row or timer of it is being"
            " processed. Do that in the call itself, not in a thread or a callback that outlives it."
        )


class Caller:
    """Makes calls, takes in what they yield and, if asked to, undoes those that fail."""

    def __init__(
        self, node: KeyedProcess, at: Cursor, context: Context, results: Results, journal: Journal
    ) -> None:
        self._node = node
        self._at = at
        self._context = context
        self._results = results
        self._journal = journal
        self._watch = Watch(None)
        self._over = Over(node.uid)
        self._calls = 0
        #: Dead letters so far: the columns of each, then its timestamp.
        self.dead: list[tuple[Any, ...]] = []

    @contextmanager
    def calling(
        self, row: Callable[[], Any] | None = None, *, keyed: bool = True
    ) -> Iterator[None]:
        """Around calls: what fails inside is an error that names the step, the key and the row."""
        key = (lambda: self._context.key) if keyed else None
        try:
            with (
                watching(self._node.limit_us) as self._watch,
                calling(self._node.uid, key=key, row=row),
            ):
                yield
        finally:
            self._at.code = self._over

    def rows(
        self, method: Method, batch: pa.RecordBatch, schema: pa.Schema, codes: Sequence[Any],
        stamps: Sequence[int | None], *, keyed: bool = True,
    ) -> None:  # fmt: skip
        """Call the method for each row of a batch, with the columns of a schema."""
        objects, columns = rows_and_values(batch.select(schema.names))
        at, context, take_in = self._at, self._context, self._results.take_in
        row = None
        if self._journal is not None or self._node.limit_us is not None:
            self._rows_with_care(method, batch, objects, codes, stamps, keyed=keyed)
            return
        times = _moments(batch, columns) or repeat(None)
        with self.calling(lambda: row, keyed=keyed):
            for code, row, stamp, moment in zip(codes, objects, stamps, times, strict=False):
                at.code = code
                at.stamp = stamp
                at.moment = moment
                made = method(row, context)
                if made is not None:
                    take_in(made)

    def in_order(self, calls: Iterable[Call], advance: Callable[[int], None]) -> None:
        """Rows in the order of their time; `advance` is told the time of each before it."""
        at, context = self._at, self._context
        row: Any = None
        with self.calling(lambda: row):
            for method, batch, place, row, code, stamp in calls:
                advance(stamp)
                at.domain = None
                at.code = code
                at.stamp = stamp
                at.moment = None
                at.watermark = stamp - 1
                self._with_care(
                    lambda: method(row, context),  # noqa: B023 - called at once
                    lambda: self._buried_row(batch, place),  # noqa: B023 - called at once
                )

    def timer(self, on_timer: Method, *, moves: bool) -> Callable[[int, int], None]:
        """What to call with the code of a key and the time of its timer. With `moves` the watermark follows."""
        at, context, take_in = self._at, self._context, self._results.take_in

        def call(code: int, time: int) -> None:
            # Timers of many keys often fall on one instant.
            if time != at.stamp or at.moment is None:
                at.stamp = time
                at.moment = instant(time)
            at.code = code
            made = on_timer(at.moment, context)
            if made is not None:
                take_in(made)

        def call_with_care(code: int, time: int) -> None:
            at.code = code
            at.stamp = time
            at.moment = None
            if moves and at.domain == "event":
                at.watermark = max(at.watermark, time)
            self._with_care(
                lambda: on_timer(instant(time), context), lambda: self._buried_timer(time)
            )

        plain = self._journal is None and self._node.limit_us is None and not moves
        return call if plain else call_with_care

    def take_dead(self) -> list[Output]:
        """The dead letters so far."""
        dead, self.dead = self.dead, []
        if not dead:
            return []
        *columns, stamps = zip(*dead, strict=True)
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(columns, ERRORS_SCHEMA, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=ERRORS_SCHEMA)
        times = None if None in stamps else np.array(stamps, np.int64)
        return [(ERRORS, Rows(batch, times))]

    def _rows_with_care(
        self, method: Method, batch: pa.RecordBatch, objects: Sequence[Any], codes: Sequence[Any],
        stamps: Sequence[int | None], *, keyed: bool,
    ) -> None:  # fmt: skip
        at, context, place = self._at, self._context, 0

        def bury() -> tuple[Any, ...]:
            return self._buried_row(batch, place)

        with self.calling(lambda: objects[place], keyed=keyed):
            for place, row in enumerate(objects):
                at.code = codes[place]
                at.stamp = stamps[place]
                at.moment = None
                self._with_care(lambda: method(row, context), bury)  # noqa: B023 - called at once

    def _with_care(self, call: Callable[[], Any], bury: Callable[[], tuple[Any, ...]]) -> None:
        """One call; if it fails it is undone and buried, or the epoch fails."""
        mark = None if self._journal is None else self._mark()
        self._calls += 1
        self._watch.call = self._calls
        try:
            made = call()
            if made is not None:
                self._results.take_in(made)
            self._watch.call = IDLE
            if mark is not None:
                self._results.check(mark)
        except (EngineError, *OURS):
            raise
        except BaseException as error:
            self._watch.call = IDLE
            if mark is None:
                raise
            self._undo(mark)
            payload, source, partition, offset = bury()
            cause, trace = cause_of(error)
            origin = (source, partition, offset)
            self.dead.append(
                (self._node.uid, cause, trace, *origin, payload, None, None, self._at.stamp)
            )

    def _mark(self) -> dict[str, int]:
        assert self._journal is not None
        self._journal.clear()
        return self._results.mark()

    def _undo(self, mark: dict[str, int]) -> None:
        assert self._journal is not None
        while self._journal:
            undo, *arguments = self._journal.pop()
            undo(*arguments)
        self._results.undo(mark)

    def _buried_row(self, batch: pa.RecordBatch, place: int) -> tuple[str, Any, Any, Any]:
        row = batch.slice(place, 1)
        names = [name for name in batch.schema.names if not name.startswith("__")]
        return (
            as_json(row.select(names))[0],
            row.column(SOURCE)[0].as_py(),
            row.column(PARTITION)[0].as_py(),
            row.column(OFFSET)[0].as_py(),
        )

    def _buried_timer(self, time: int) -> tuple[str, None, None, None]:
        letter = {"key": self._context.key, "timer": instant(time), "domain": self._at.domain}
        return json.dumps(letter, default=shown, ensure_ascii=False), None, None, None


def _moments(batch: pa.RecordBatch, columns: Sequence[list[Any]]) -> list[datetime] | None:
    """The timestamps as functions see them, if a column holds just these: then they were made with the rows."""
    stamps = batch.column(TIMESTAMP)
    for made, column in zip(columns, batch.columns, strict=False):
        whole = column.type == _INSTANT and column.null_count == 0
        if whole and column.view(pa.int64()).equals(stamps):
            return made
    return None


@contextmanager
def uncollected() -> Iterator[None]:
    """An epoch makes millions of objects that die by themselves; looking for cycles among them is a fifth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
