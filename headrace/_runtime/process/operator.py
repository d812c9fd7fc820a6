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

from headrace import process_functions
from headrace._graph.nodes import LATE, KeyedProcess
from headrace._runtime.columns import row_objects
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import HASH, KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.plain_keys import key_columns
from headrace._runtime.process.caller import Caller, uncollected
from headrace._runtime.process.context import Context, TimerService
from headrace._runtime.process.cursor import Journal
from headrace._runtime.process.instances import instance_of
from headrace._runtime.process.keyless import Keyless, NoKey
from headrace._runtime.process.layout import Layout
from headrace._runtime.process.results import Output, Results
from headrace._runtime.process.spreading import in_source_order
from headrace._runtime.process.states.expiry import Expiry
from headrace._runtime.process.states.stores import CLOCK_TIMERS, EVENT_TIMERS, Stores
from headrace._runtime.process.timing.alarms import Alarms
from headrace._runtime.process.timing.ordered import Ordered
from headrace._runtime.process.timing.timers import Timers
from headrace._runtime.process.touched import Touched
from headrace._runtime.state import ShardState
from headrace._runtime.unfolded import TIMESTAMP, join_batches
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
        self._on_timer = _on_timer_of(function)
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
        self._results = Results(node, at, self._touched.key_of)
        timers = TimerService(at, self._event, self._clock, node.uid)
        self.context = Context(at, self._touched, timers, self._results.output, node.uid)
        self._caller = Caller(node, at, self.context, self._results, self._journal)
        self._expiries = [
            (domain, Expiry(domain, state, self._touched, self._stores.by_key))
            for domain in ("event", "processing")
            if layout.expires_in(domain)
        ]
        self._ordered = Ordered(node, state) if node.ordered else None
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
        with uncollected():
            self._tick(moment)
        yield from self._take()

    def settle(self) -> Outputs:
        """Rows, then what they set for the past."""
        with uncollected():
            self._settle()
        yield from self._take()

    def _tick(self, moment: Moment) -> None:
        at = self._at
        self._moment = moment
        at.watermark, at.clock = moment.before, moment.clock
        self._event.move(moment.before, moment.before)
        self._clock.move(moment.clock_before, moment.clock_before)
        self._take_rows()
        self._event.move(moment.before, moment.watermark)
        self._clock.move(moment.clock_before, moment.clock)
        self._move_expiries(moment)
        if self._ordered is not None:
            self._deliver(self._ordered, moment)
        else:
            at.watermark = moment.watermark
            self._look()
        self._fire()
        at.watermark = moment.watermark
        self._collect()

    def _settle(self) -> None:
        self._take_rows()
        self._fire()
        self._look()
        self._collect()
        self._instance.check()
        for domain, expiry in self._expiries:
            expiry.write(self._now(domain))
        self._stores.write()
        self._event.write()
        self._clock.write()
        if self._ordered is not None:
            self._ordered.forget(self._moment.watermark)

    def outlook(self) -> Outlook:
        """The next timers."""
        fires_at, keys = self._event_timers.next(self._moment.watermark)
        due, _ = self._clock_timers.next(self._moment.clock)
        if self._ordered is not None:
            fires_at, keys = self._ordered.next(self._moment.watermark, fires_at, keys)
        return Outlook(fires_at, keys, due)

    # Rows

    def _take_rows(self) -> None:
        """Rows of each input in turn, broadcast ones before the others; they are processed, or begin to wait."""
        waiting, self._waiting = self._waiting, [[] for _ in self._waiting]
        if self._node.kind == "broadcast" and waiting[1]:
            with self._keyless.broadcast(self._results, self._caller.dead) as no_key:
                batch = in_source_order(join_batches(waiting.pop()))
                self._process_without_key(batch, 1, no_key)
        for side, batches in enumerate(waiting):
            if batches and self._layout.dealt:
                with self._keyless.dealt() as no_key:
                    self._process_without_key(join_batches(batches), side, no_key)
            elif batches and self._ordered is not None:
                late = self._ordered.take(join_batches(batches), side, self._at.watermark)
                self._outputs += [] if late is None else [(LATE, late)]
            elif batches:
                batch = join_batches(batches)
                self._process(batch, side, self._codes(batch, side).tolist())

    def _process_without_key(self, batch: pa.RecordBatch, side: int, no_key: NoKey) -> None:
        self._process(batch, side, [no_key] * batch.num_rows, keyed=False)

    def _process(
        self, batch: pa.RecordBatch, side: int, codes: list[Any], *, keyed: bool = True
    ) -> None:
        stamps = batch.column(TIMESTAMP).to_pylist()
        self._at.domain = None
        self._instance.open()
        for start in range(0, batch.num_rows, _ROWS):
            part, piece = slice(start, start + _ROWS), batch.slice(start, _ROWS)
            schema, method = self._node.input_schemas[side], self._methods[side]
            self._caller.rows(method, piece, schema, codes[part], stamps[part], keyed=keyed)

    def _objects(self, batch: pa.RecordBatch, side: int) -> list[Any]:
        return row_objects(batch.select(self._node.input_schemas[side].names))

    def _deliver(self, ordered: Ordered, moment: Moment) -> None:
        """Rows that the watermark has passed, in the order of their time, with timers where they belong."""
        due = ordered.due(moment)
        if not due:
            return
        codes = {side: self._codes(batch, side).tolist() for side, batch in due.items()}
        self._instance.open()
        calls = ordered.calls(due, codes, self._objects, self._methods)
        self._caller.in_order(calls, self._fire_until)

    def _codes(self, batch: pa.RecordBatch, side: int) -> Integers:
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys = key_columns(self._node.keys[side], named, batch.num_rows)
        codes = self._touched.codes(batch.column(HASH).to_numpy(), keys)
        self._stores.load()
        return codes

    # Timers

    def _fire(self) -> None:
        """Timers of both domains, until none is ready."""
        self._stores.load()
        if not len(self._touched):
            return
        self._instance.open()
        with self._caller.calling():
            while self._fire_domain(self._event, "event") + self._fire_domain(
                self._clock, "processing"
            ):
                pass

    def _fire_domain(self, alarms: Alarms, domain: str) -> int:
        self._at.domain = domain
        if domain == "processing":
            # With `ordered` it follows rows and timers; what the clock fires is of no time among theirs.
            self._at.watermark = self._moment.watermark
        return alarms.fire(self._caller.timer(self._on_timer, moves=self._ordered is not None))

    def _fire_until(self, time: int) -> None:
        """The timers of event time before this."""
        if self._event.next < time:
            self._at.domain = "event"
            self._event.fire(self._caller.timer(self._on_timer, moves=True), time - 1)

    # Expiry

    def _now(self, domain: str) -> int:
        return self._moment.watermark if domain == "event" else self._moment.clock

    def _move_expiries(self, moment: Moment) -> None:
        for domain, expiry in self._expiries:
            before = moment.before if domain == "event" else moment.clock_before
            expiry.move(before, self._now(domain))

    def _look(self) -> None:
        self._stores.load()
        for domain, expiry in self._expiries:
            expiry.look(self._now(domain))

    def _collect(self) -> None:
        """What was made so far, as batches."""
        self._outputs += self._results.take()
        self._outputs += self._caller.take_dead()

    def _take(self) -> Iterator[Output]:
        outputs, self._outputs = self._outputs, []
        yield from outputs


def _on_timer_of(function: Any) -> Any:
    own = getattr(type(function), "on_timer", None)
    if own is None:
        return _no_timers
    # A misspelt one would lose timers in silence.
    return _no_on_timer if own.__module__ == process_functions.__name__ else function.on_timer


def _no_timers(_when: Any, context: Any) -> None:
    raise UserCodeError(
        f"The code of step '{context.uid}' set a timer, but a plain function has no on_timer; derive from"
        " hr.KeyedProcessFunction."
    )


def _no_on_timer(_when: Any, context: Any) -> None:
    raise UserCodeError(
        f"The code of step '{context.uid}' set a timer, but its class has no method for it; write"
        " def on_timer(self, timestamp, ctx)."
    )


def _method(node: KeyedProcess, function: Any, side: int) -> Any:
    if node.kind == "co":
        return (function.process_element1, function.process_element2)[side]
    if node.kind == "broadcast" and side == 1:
        return function.process_broadcast_element
    return function.process_element
