"""Functions with their own state and clocks, as users derive them.

`process_element` and `on_timer` yield any number of results, return an iterable of them, or None. A pair
`tag, row` goes to a side output. The columns of results come from the return annotation or from `schema=`.
State is declared on the class (`hr.state`) or with descriptors in `open`; a side output that is an attribute of the class is
declared by that. One instance serves all keys of a worker, one after the other; attributes of your own are
a cache that is gone with the process, state is what survives.

Deliberately absent: running them. `_runtime.process` does that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pyarrow as pa

__all__ = [
    "BroadcastProcessFunction",
    "CoProcessFunction",
    "KeyedBatchFunction",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "ProcessFunction",
    "ReduceFunction",
]


class _Opened:
    """What all have."""

    def open(self, ctx: Any) -> None:
        """Called once in each worker process before the first row: load a model, make a connection.

        `ctx` gives out state for descriptors: `ctx.get_state(hr.state.ValueStateDescriptor("n", int))`. It is also
        called once when the step is built, on a copy, to learn of these.
        """

    def close(self) -> None:
        """Called when a worker process ends in good order; a killed one does not come to it."""


class ProcessFunction(_Opened, ABC):
    """Any number of results for each row, to any number of outputs; no keys, hence no state of keys and no timers.

    It may have items of its own, `hr.state.OperatorList` and `OperatorUnion`; then its rows are dealt to shards.
    """

    @abstractmethod
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a row."""


class KeyedProcessFunction(_Opened, ABC):
    """A function with state and timers for each key.

    class Counter(hr.KeyedProcessFunction):
        seen: hr.state.Value[int]

        def process_element(self, value, ctx) -> Iterator[Count]:
            self.seen.update((self.seen.value() or 0) + 1)
            ctx.timers.register_event_time(ctx.timestamp + timedelta(minutes=1))

        def on_timer(self, timestamp, ctx) -> Iterator[Count]:
            yield Count(ctx.key, self.seen.value())
            self.seen.clear()
    """

    @abstractmethod
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a row. `ctx` has `key`, `timestamp`, `watermark`, `clock`, `timers`, `output(tag, row)`,
        `uid`, `shard` and `metrics`.
        """

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a timer of `ctx.key`; `ctx.time_domain` is "event" or "processing"."""


class CoProcessFunction(_Opened, ABC):
    """As `ProcessFunction`, of two streams."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a row of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a row of the second stream."""


class KeyedCoProcessFunction(_Opened, ABC):
    """As `KeyedProcessFunction`, of two streams that share the state of a key.

    Within an epoch nothing is promised about the order between rows of the two.
    """

    @abstractmethod
    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a row of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a row of the second stream."""

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a timer of `ctx.key`."""


class BroadcastProcessFunction(_Opened, ABC):
    """Rows of a stream beside state that another stream, sent to every shard, has made.

    In an epoch the broadcast rows come first. What `process_broadcast_element` yields, and what it counts, goes out
    once, however many shards there are.
    """

    @abstractmethod
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a row; state declared as `hr.state.Broadcast[K, V]` can be read only."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a broadcast row: change the broadcast state, the same way in every shard.

        Results have the timestamp of the row or, if it has none, the clock of the epoch.
        """


class KeyedBroadcastProcessFunction(_Opened, ABC):
    """As `BroadcastProcessFunction`, with state and timers for each key of the first stream."""

    @abstractmethod
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a row; broadcast state can be read only."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a broadcast row; it has no key, so state of keys cannot be used here."""

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterable[Any] | None:
        """What becomes of a timer of `ctx.key`."""


class KeyedBatchFunction(_Opened, ABC):
    """A keyed function on columns: one call for all rows of a shard and epoch, state as columns.

    class Count(hr.KeyedBatchFunction):
        seen: hr.state.Value[int]

        def process_batch(self, batch, ctx):
            seen = self.seen.get(ctx.keys, default=0)                # one for each key of the call
            np.add.at(seen, ctx.slots, 1)                            # ctx.slots: for each row, the place of its key
            self.seen.put(ctx.keys, seen)
            ctx.timers.register_event_time(ctx.slots, ctx.timestamps + 60_000_000)

        def on_timers(self, timers, ctx):
            seen = self.seen.get(ctx.slots, default=0)
            return pa.record_batch({"user": timers["user"], "seen": seen})

    State is `hr.state.Value` only. Its `get`, `put` and `clear`, and timers, take `ctx.keys` for all keys, an array of places
    such as `ctx.slots`, or a mask of keys. Without a default `get` gives an Arrow array with nulls; with one, numbers
    and times come as a numpy array. A null that is put takes the value away. With a TTL in event time a value is touched at
    the greatest timestamp that its key has in the call.

    Rows of a key come in the order of their arrival. Results that are as many as the rows (or timers) of the call have their
    timestamps, one by one. Any others say their own: `ctx.emit(batch, timestamps=ctx.timestamps[chosen])`, with
    `ctx.key_timestamps` for one row a key, or `ctx.output(tag, batch, timestamps=...)`.
    """

    @abstractmethod
    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> Any:
        """What becomes of rows: a batch, an iterable of batches and `tag, batch` pairs, or None.

        `ctx` has `keys` (`len`, `to_arrow()`), `slots`, `timestamps` (int64 microseconds, None if rows have none),
        `key_timestamps`, `watermark`, `clock`, `timers`, `emit`, `output`, `uid`, `shard` and `metrics`.
        """

    def on_timers(self, timers: pa.RecordBatch, ctx: Any) -> Any:
        """What becomes of all timers of `ctx.time_domain` that are due: the columns of the key and `time`, in order of time.

        They are over: to delete one of them here changes nothing, and to set one again lets it fire again. What is
        set at or before the present comes with the next call, in this epoch.
        """


class ReduceFunction(ABC):
    """Two rows become one, for `KeyedStream.reduce` and `hr.state.keep(reduce=...)`."""

    @abstractmethod
    def reduce(self, a: Any, b: Any) -> Any:
        """One for both."""
