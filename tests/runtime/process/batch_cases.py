"""Functions on columns beside functions on rows that do the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace._graph.nodes import KeyedProcess
from headrace.schema import as_schema
from tests.runtime.process.cases import process_node

INPUT = {"user": str, "n": int, "id": int}
OUTPUT = {"user": str, "n": int, "word": str, "domain": str}
SCHEMA = as_schema(OUTPUT)
FEW = hr.OutputTag("few", {"user": str})
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
US = timedelta(microseconds=1)


def node(function: Any) -> KeyedProcess:
    """A step with one of these."""
    kind = "batch" if isinstance(function, hr.KeyedBatchFunction) else "keyed"
    return process_node(function, kind, schema=OUTPUT, inputs=[INPUT], keys=[("user",)])


class Totals(hr.KeyedProcessFunction):
    """Two values of a key; what a row does depends on its number."""

    total: hr.state.Value[int]
    word: hr.state.Value[str]
    few = FEW

    def __init__(self, unit: int = 1) -> None:
        self.unit = unit

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        """Fold a row in."""
        n = value.n
        self.total.update((self.total.value() or 0) + n)
        if n % 3:
            self.word.update((self.word.value() or "") + "ä"[: n % 2] + "b")
        else:
            self.word.clear()
        if n < 0:
            self.total.clear()
        ctx.timers.register_event_time(ctx.timestamp + n * self.unit * US)
        ctx.timers.delete_event_time(ctx.timestamp + 2 * self.unit * US)
        ctx.timers.register_processing_time(ctx.clock + (n % 3) * US)
        ctx.timers.delete_processing_time(ctx.clock + US)
        yield self._told(ctx.key, None)
        if n == 1:
            yield FEW, {"user": ctx.key}

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Any]:
        """Tell, and forget."""
        yield self._told(ctx.key, ctx.time_domain)
        self.total.clear()
        self.word.clear()

    def _told(self, user: str, domain: str | None) -> Any:
        total = self.total.value()
        return {"user": user, "n": total, "word": self.word.value(), "domain": domain}


class TotalsByPlace(hr.KeyedBatchFunction):
    """The same, one place at a time: every call of a handle has an array of one."""

    total: hr.state.Value[int]
    word: hr.state.Value[str]
    few = FEW

    def __init__(self, unit: int = 1) -> None:
        self.unit = unit

    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> Iterator[Any]:
        """Fold rows in."""
        clock = (ctx.clock - EPOCH) // US
        told = []
        for n, slot, stamp in zip(
            batch.column("n").to_pylist(), ctx.slots.tolist(), ctx.timestamps.tolist(), strict=True
        ):
            self.total.put([slot], self.total.get([slot], default=0) + n)
            if n % 3:
                word = self.word.get([slot], default="")[0].as_py()
                self.word.put([slot], [word + "ä"[: n % 2] + "b"])
            else:
                self.word.put([slot], None)
            if n < 0:
                self.total.clear(np.arange(len(ctx.keys)) == slot)
            ctx.timers.register_event_time([slot], [stamp + n * self.unit])
            ctx.timers.delete_event_time([slot], np.array([stamp + 2 * self.unit]))
            ctx.timers.register_processing_time([slot], ctx.clock + (n % 3) * US)
            ctx.timers.delete_processing_time([slot], clock + 1)
            told.append((self.total.get([slot])[0].as_py(), self.word.get([slot])[0].as_py()))
        users = batch.column("user")
        yield table(users, told, None)
        chosen = np.flatnonzero(batch.column("n").to_numpy() == 1)
        few = pa.RecordBatch.from_arrays([users.take(pa.array(chosen))], schema=FEW.schema)
        ctx.output(FEW, few, timestamps=ctx.timestamps[chosen])

    def on_timers(self, timers: pa.RecordBatch, ctx: Any) -> pa.RecordBatch:
        """Tell, and forget."""
        told = []
        for slot in ctx.slots.tolist():
            told.append((self.total.get([slot])[0].as_py(), self.word.get([slot])[0].as_py()))
            self.total.clear([slot])
            self.word.clear([slot])
        return table(timers.column("user"), told, ctx.time_domain)


class Chains(hr.KeyedProcessFunction):
    """Timers that set others, some for times that are over.

    No chain sets what another has: on columns, both may be in one call, and what a call was given is over.
    """

    left: hr.state.Value[int]

    def __init__(self, unit: int = 1) -> None:
        self.unit = unit

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        """Set one."""
        self.left.update(6)
        ctx.timers.register_event_time(EPOCH + 4 * (value.id - 2) * self.unit * US)
        yield from ()

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Any]:
        """Set another."""
        at = (timestamp - EPOCH) // US // self.unit
        yield {"user": ctx.key, "n": at, "word": None, "domain": ctx.time_domain}
        if ctx.time_domain == "event" and at % 4 < 3:
            ctx.timers.register_event_time(timestamp + self.unit * US)
        if ctx.time_domain == "event" and at % 4 == 3:
            ctx.timers.register_processing_time(EPOCH + at * US)
            self.left.clear()


class ChainsOfColumns(hr.KeyedBatchFunction):
    """The same on columns."""

    left: hr.state.Value[int]

    def __init__(self, unit: int = 1) -> None:
        self.unit = unit

    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> None:
        """Set them."""
        self.left.put(ctx.keys, np.full(len(ctx.keys), 6))
        times = 4 * (batch.column("id").to_numpy() - 2) * self.unit
        # The first of them again, so that some coalesce in a call.
        slots = np.concatenate([ctx.slots, ctx.slots[:1]])
        ctx.timers.register_event_time(slots, np.concatenate([times, times[:1]]))

    def on_timers(self, timers: pa.RecordBatch, ctx: Any) -> pa.RecordBatch:
        """Set others."""
        at = timers.column("time").cast(pa.int64()).to_numpy() // self.unit
        event = np.full(len(at), ctx.time_domain == "event")
        more, last = event & (at % 4 < 3), event & (at % 4 == 3)
        # As Arrow has them, and as numpy has them.
        later = (ctx.timestamps[more] + self.unit).astype("datetime64[us]")
        ctx.timers.register_event_time(pa.array(ctx.slots[more]), pa.array(later))
        ctx.timers.register_processing_time(ctx.slots[last], at[last].astype("datetime64[us]"))
        self.left.clear(ctx.slots[last])
        return table(timers.column("user"), [(n, None) for n in at.tolist()], ctx.time_domain)


class Mortals(hr.KeyedProcessFunction):
    """Values that live for a time."""

    def __init__(self, unit: int = 1) -> None:
        self.unit = unit

    def open(self, ctx: Any) -> None:
        """The states."""
        _open_mortals(self, ctx)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        """Tell, and touch."""
        word = f"{self.written.value()} {self.read.value()} {self.clock.value()}"
        yield {"user": ctx.key, "n": value.n, "word": word, "domain": None}
        for number, state in enumerate((self.written, self.read, self.clock), 2):
            if value.n % number:
                state.update(value.n)
            elif value.n < 0:
                state.clear()
        ctx.timers.register_event_time(ctx.timestamp + value.n * self.unit * US)

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Any]:
        """Tell."""
        word = f"{self.written.value()} - {self.clock.value()}"
        yield {"user": ctx.key, "n": None, "word": word, "domain": ctx.time_domain}


class MortalsOfColumns(hr.KeyedBatchFunction):
    """The same on columns, for rows of which no two in a call have the same key."""

    def __init__(self, unit: int = 1) -> None:
        self.unit = unit

    def open(self, ctx: Any) -> None:
        """The states."""
        _open_mortals(self, ctx)

    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> Iterator[Any]:
        """Tell, and touch."""
        n = batch.column("n").to_numpy()
        states = (self.written, self.read, self.clock)
        kept = zip(*(state.get(ctx.keys).to_pylist() for state in states), strict=True)
        told = [(m, " ".join(map(str, k))) for m, k in zip(n.tolist(), kept, strict=True)]
        yield table(batch.column("user"), told, None)
        for number, state in enumerate(states, 2):
            state.put(np.flatnonzero(n % number), n[n % number != 0])
            state.clear((n % number == 0) & (n < 0))
        ctx.timers.register_event_time(ctx.slots, ctx.timestamps + n * self.unit)

    def on_timers(self, timers: pa.RecordBatch, ctx: Any) -> pa.RecordBatch:
        """Tell."""
        written, clock = (s.get(ctx.slots).to_pylist() for s in (self.written, self.clock))
        told = [(None, f"{a} - {b}") for a, b in zip(written, clock, strict=True)]
        return table(timers.column("user"), told, ctx.time_domain)


def _open_mortals(function: Any, ctx: Any) -> None:
    ttls = {
        "written": hr.state.TTL(5 * function.unit * US),
        "read": hr.state.TTL(4 * function.unit * US, update="read_and_write"),
        "clock": hr.state.TTL(3 * US, time="processing"),
    }
    for name, ttl in ttls.items():
        state = ctx.get_state(hr.state.ValueStateDescriptor(name, int, ttl=ttl))
        setattr(function, name, state)


def table(users: pa.Array, told: list[Any], domain: str | None) -> pa.RecordBatch:
    """Results."""
    numbers, words = zip(*told, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            users,
            pa.array(numbers, pa.int64()),
            pa.array(words, pa.string()),
            pa.array([domain] * len(told), pa.string()),
        ],
        schema=SCHEMA,
    )
