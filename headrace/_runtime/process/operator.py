"""The half of a process step behind the shuffle: the function is called for rows and timers, in the order of time.

merge (early rows)    wait for the tick
tick                  early rows, judged by the watermark before; then timers up to the watermark and the clock
merge                 rows wait for the others of the epoch
settle                rows; then timers that were set at or before the present; then everything is written

Results have the timestamp of their row, or the time of their timer, whichever clock it went by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import KeyedProcess
from headrace._runtime.columns import row_objects
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import HASH, KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.plain_keys import key_columns
from headrace._runtime.process.alarms import Alarms
from headrace._runtime.process.calls import Output, Results
from headrace._runtime.process.context import Context, TimerService, instant
from headrace._runtime.process.cursor import Journal
from headrace._runtime.process.instances import instance_of
from headrace._runtime.process.keyless import Keyless, NoKey
from headrace._runtime.process.layout import Layout
from headrace._runtime.process.stores import CLOCK_TIMERS, EVENT_TIMERS, Stores
from headrace._runtime.process.timers import Timers
from headrace._runtime.process.touched import Touched
from headrace._runtime.state import ShardState
from headrace._runtime.usercode import calling
from headrace._runtime.windows.unfolded import TIMESTAMP, join_batches
from headrace.errors import UserCodeError

__all__ = ["ProcessOperator"]

Integers = npt.NDArray[np.int64]

#: So many rows are objects at a time.
_ROWS = 65_536


class ProcessOperator(KeyedOperator):
    """A function on one shard for one epoch."""

    def __init__(self, node: KeyedProcess, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._layout = layout = Layout(node)
        self._instance = instance_of(node)
        function = self._instance.function
        self._methods = [_method(node, function, side) for side in range(len(node.inputs))]
        self._on_timer = getattr(function, "on_timer", None) or _no_timers
        # Checkpointed
        self._event_timers = Timers(EVENT_TIMERS, state)
        self._clock_timers = Timers(CLOCK_TIMERS, state)
        # Of this epoch
        self._at = at = self._instance.cursor
        self._journal: Journal = [] if node.on_error == "dead_letter" else None
        self._touched = Touched(layout.keys)
        self._stores = Stores(layout, state, self._touched, self._journal, self._instance.handles)
        self._event = Alarms(self._event_timers, self._touched, self._journal)
        self._clock = Alarms(self._clock_timers, self._touched, self._journal)
        self._results = Results(node, at)
        timers = TimerService(at, self._event, self._clock, node.uid)
        self.context = Context(at, self._touched, timers, self._results.output, node.uid)
        self._keyless = Keyless(node, self._stores, self.context, is_first=state.groups.start == 0)
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in node.inputs]
        self._outputs: list[Output] = []
        self._moment = Moment(0, 0, 0, 0)

    def equip(self, metrics: Metrics, shard: int) -> None:
        """What the function finds in its context."""
        self.context.metrics = metrics
        self.context.shard = shard

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in."""
        if batch.num_rows:
            self._waiting[side].append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Early rows, then timers."""
        at = self._at
        self._moment = moment
        at.watermark, at.clock = moment.before, moment.clock
        self._event.move(moment.before, moment.before)
        self._clock.move(moment.clock_before, moment.clock_before)
        self._process_waiting()
        at.watermark = moment.watermark
        self._event.move(moment.before, moment.watermark)
        self._clock.move(moment.clock_before, moment.clock)
        self._fire()
        yield from self._take()

    def settle(self) -> Outputs:
        """Rows, then what they set for the past."""
        self._process_waiting()
        self._fire()
        yield from self._take()
        self._stores.write()
        self._event.write()
        self._clock.write()

    def outlook(self) -> Outlook:
        """The next timers."""
        fires_at, keys = self._event_timers.next(self._moment.watermark)
        due, _ = self._clock_timers.next(self._moment.clock)
        return Outlook(fires_at, keys, due)

    # Rows

    def _process_waiting(self) -> None:
        """Of each input in turn; broadcast rows come before the others."""
        waiting, self._waiting = self._waiting, [[] for _ in self._waiting]
        if self._node.kind == "broadcast" and waiting[1]:
            with self._keyless.broadcast(self._results, self._outputs) as no_key:
                self._process_without_key(join_batches(waiting.pop()), 1, no_key)
        for side, batches in enumerate(waiting):
            if batches and self._layout.dealt:
                with self._keyless.dealt() as no_key:
                    self._process_without_key(join_batches(batches), side, no_key)
            elif batches:
                batch = join_batches(batches)
                self._process(batch, side, self._codes(batch, side).tolist())

    def _process_without_key(self, batch: pa.RecordBatch, side: int, no_key: NoKey) -> None:
        self._process(batch, side, [no_key] * batch.num_rows)

    def _process(self, batch: pa.RecordBatch, side: int, codes: list[Any]) -> None:
        rows = batch.select(self._node.input_schemas[side].names)
        stamps = batch.column(TIMESTAMP).to_pylist()
        self._at.domain = None
        for start in range(0, batch.num_rows, _ROWS):
            part = slice(start, start + _ROWS)
            objects = row_objects(rows.slice(start, _ROWS))
            self._call(self._methods[side], objects, codes[part], stamps[part])

    def _codes(self, batch: pa.RecordBatch, side: int) -> Integers:
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys = key_columns(self._node.keys[side], named, batch.num_rows)
        codes = self._touched.codes(batch.column(HASH).to_numpy(), keys)
        self._stores.load()
        return codes

    def _call(
        self, method: Any, rows: list[Any], codes: list[Any], stamps: list[int | None]
    ) -> None:
        at, context, take_in = self._at, self.context, self._results.take_in
        row = None
        key = None if isinstance(codes[0], NoKey) else lambda: context.key
        with calling(self._node.uid, key=key, row=lambda: row):
            self._instance.open()
            for code, row, stamp in zip(codes, rows, stamps, strict=True):
                at.code = code
                at.stamp = stamp
                made = method(row, context)
                if made is not None:
                    take_in(made)

    # Timers

    def _fire(self) -> None:
        """Timers of both domains, until none is ready."""
        self._stores.load()
        if not len(self._touched):
            return
        with calling(self._node.uid, key=lambda: self.context.key):
            self._instance.open()
            while self._fire_domain(self._event, "event") + self._fire_domain(
                self._clock, "processing"
            ):
                pass

    def _fire_domain(self, alarms: Alarms, domain: str) -> int:
        at, context, take_in = self._at, self.context, self._results.take_in
        on_timer = self._on_timer

        def call(code: int, time: int) -> None:
            at.code = code
            at.stamp = time
            made = on_timer(instant(time), context)
            if made is not None:
                take_in(made)

        at.domain = domain
        return alarms.fire(call)

    def _take(self) -> Iterator[Output]:
        yield from self._outputs
        self._outputs = []
        yield from self._results.take()


def _no_timers(_when: Any, context: Any) -> None:
    raise UserCodeError(
        f"The code of step '{context.uid}' set a timer, but a plain function has no on_timer; derive from"
        " hr.KeyedProcessFunction."
    )


def _method(node: KeyedProcess, function: Any, side: int) -> Any:
    if node.kind == "co":
        return (function.process_element1, function.process_element2)[side]
    if node.kind == "broadcast" and side == 1:
        return function.process_broadcast_element
    return function.process_element
