"""The half of a process step behind the shuffle for functions on columns: one call for all rows, one for all timers.

merge (early rows)    wait for the tick
tick                  early rows, judged by the watermark before; what has outlived its time goes; then timers up to
                      the watermark and the clock
merge                 rows wait for the others of the epoch
settle                rows; then timers that were set at or before the present

The order is that of the engine for rows. A call of `on_timers` gets all timers of one time domain that are due, in the
order of time; what it sets at or before the present comes with the next call, until none is left. State and timers
are written as the function says it, and there is no loop over rows or keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import KeyedProcess
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import HASH, KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.plain_keys import key_columns
from headrace._runtime.process.columns.context import BatchContext, TimerColumns
from headrace._runtime.process.columns.keys import Keys
from headrace._runtime.process.columns.pending import Pending
from headrace._runtime.process.columns.results import BatchResults
from headrace._runtime.process.columns.values import KeptColumns
from headrace._runtime.process.instances import instance_of
from headrace._runtime.process.layout import Layout
from headrace._runtime.process.states.stores import CLOCK_TIMERS, EVENT_TIMERS
from headrace._runtime.process.timing.timers import Timers
from headrace._runtime.state import ShardState
from headrace._runtime.state.columns import to_arrow
from headrace._runtime.unfolded import TIMESTAMP, join_batches
from headrace._runtime.usercode import calling
from headrace._runtime.watchdog import watching
from headrace.errors import UserCodeError
from headrace.process_functions import KeyedBatchFunction

__all__ = ["BatchOperator"]

Integers = npt.NDArray[np.int64]

_INSTANT = pa.timestamp("us", "UTC")


class BatchOperator(KeyedOperator):
    """A function on columns, on one shard for one epoch."""

    def __init__(self, node: KeyedProcess, state: ShardState) -> None:
        # Configuration
        self._node = node
        layout = Layout(node)
        self._keys = layout.keys
        self._instance = instance_of(node)
        # Checkpointed
        self._event_timers = Timers(EVENT_TIMERS, state)
        self._clock_timers = Timers(CLOCK_TIMERS, state)
        self._kept = KeptColumns(layout, state)
        for handle in self._instance.handles.values():
            handle.serve(self._kept)
        # Of this epoch
        self._event = Pending(self._event_timers, self._keys)
        self._clock = Pending(self._clock_timers, self._keys)
        self._results = BatchResults(node)
        none = Keys.of_distinct(self._keys, [pa.nulls(0, k) for k in self._keys.types], _NONE)
        timers = TimerColumns(self._event, self._clock, node.uid, none)
        self._context = BatchContext(node.uid, timers, self._results, none)
        self._waiting: list[pa.RecordBatch] = []
        self._moment = Moment(0, 0, 0, 0)

    def equip(self, metrics: Metrics, shard: int) -> None:
        """What the function finds in its context."""
        self._context.metrics = metrics
        self._context.shard = shard

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in."""
        del side
        if batch.num_rows:
            self._waiting.append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Early rows, then timers."""
        self._moment = moment
        self._context.reach(moment.before, moment.clock)
        self._event.move(moment.before, moment.before)
        self._clock.move(moment.clock_before, moment.clock)
        self._process_waiting()
        self._context.reach(moment.watermark, moment.clock)
        self._event.move(moment.before, moment.watermark)
        self._kept.expire("event", moment.before, moment.watermark)
        self._kept.expire("processing", moment.clock_before, moment.clock)
        self._fire()
        yield from self._results.take()

    def settle(self) -> Outputs:
        """Rows, then what they set for the past."""
        self._process_waiting()
        self._fire()
        yield from self._results.take()
        self._instance.check()
        self._event.end()
        self._clock.end()
        self._kept.forget("event", self._moment.watermark)
        self._kept.forget("processing", self._moment.clock)

    def outlook(self) -> Outlook:
        """The next timers."""
        fires_at, keys = self._event_timers.next(self._moment.watermark)
        due, _ = self._clock_timers.next(self._moment.clock)
        return Outlook(fires_at, keys, due)

    def _process_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        batch = join_batches(waiting)
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = key_columns(self._node.keys[0], named, batch.num_rows)
        keys = Keys.of_rows(self._keys, columns, batch.column(HASH).to_numpy())
        stamps = batch.column(TIMESTAMP)
        times = None if stamps.null_count else stamps.to_numpy()
        rows = _as_input(named, self._node.input_schemas[0])
        self._call(self._instance.function.process_batch, rows, keys, times)

    def _fire(self) -> None:
        """Timers of both domains, until none is ready."""
        fired = True
        while fired:
            fired = False
            for pending, domain in ((self._event, "event"), (self._clock, "processing")):
                due = pending.take()
                if due is not None:
                    fired = True
                    rows = self._timer_batch(*due)
                    self._call(self._on_timers(), rows, *due, domain)

    def _on_timers(self) -> Any:
        function = self._instance.function
        # A misspelt one would lose timers in silence.
        if type(function).on_timers is KeyedBatchFunction.on_timers:
            raise UserCodeError(
                f"The code of step '{self._node.uid}' set timers, but its class has no method for them; write"
                " def on_timers(self, timers, ctx)."
            )
        return function.on_timers

    def _timer_batch(self, keys: Keys, times: Integers) -> pa.RecordBatch:
        columns = [*keys.columns(keys.slots), to_arrow(times, _INSTANT)]
        return pa.RecordBatch.from_arrays(columns, names=[*self._keys.names, "time"])

    def _call(
        self, method: Any, batch: pa.RecordBatch, keys: Keys, times: Integers | None,
        domain: str | None = None,
    ) -> None:  # fmt: skip
        self._context.begin(keys, times, domain)
        self._kept.begin(keys, self._context)
        self._results.begin(batch.num_rows, times)
        with calling(self._node.uid):
            self._instance.open()
            with watching(self._node.limit_us) as watch:
                watch.call = 0
                self._results.take_in(method(batch, self._context))
        self._kept.end()


_NONE: Integers = np.empty(0, np.int64)


def _as_input(named: dict[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the columns of the step's input: some crossed the shuffle as another type."""
    columns = [
        named[field.name]
        if named[field.name].type == field.type
        else named[field.name].cast(field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
