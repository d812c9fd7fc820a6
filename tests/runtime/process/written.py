"""Process functions as users write them, one for each kind of state: each keeps, shows and forgets in its own way."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import headrace as hr
from headrace.state import TTL
from tests.runtime.process.programs import Average

US = timedelta(microseconds=1)
#: Long enough for some rows to meet what others kept, too short for most.
SHORT = TTL(9 * US)


@dataclass
class Seen:
    """What a function saw in its state."""

    key: str
    n: int
    seen: str


MANY = hr.OutputTag("many", {"key": str, "n": int})


class Keeps(hr.KeyedProcessFunction):
    """Adds each row to a state that a timer forgets; rows with 9 are reported aside.

    `failing`: at the end of rows with 13, and of timers whose time can be divided by 5.
    """

    many = MANY

    def __init__(self, failing: bool = False) -> None:
        self.failing = failing

    @abstractmethod
    def keep(self, n: int) -> None:
        """Add a number to the state."""

    @abstractmethod
    def seen(self) -> Any:
        """What is there."""

    @abstractmethod
    def forget(self) -> None:
        """Take it away."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Seen]:
        """Keep the number, and say what there is."""
        self.keep(value.n)
        ctx.timers.register_event_time(ctx.timestamp + 12 * US)
        ctx.timers.delete_event_time(ctx.timestamp + 11 * US)
        yield Seen(ctx.key, value.n, str(self.seen()))
        if value.n == 9:
            yield MANY, {"key": ctx.key, "n": value.n}  # type: ignore[misc]
        if self.failing and value.n == 13:
            raise ValueError("13")

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Seen]:
        """Say what there is, and forget it."""
        yield Seen(ctx.key, -1, str(self.seen()))
        self.forget()
        if self.failing and timestamp.microsecond % 5 == 0:
            ctx.timers.register_event_time(timestamp + 3 * US)
            raise ValueError("fifth")


@dataclass
class Visit:
    """A value with parts."""

    numbers: list[int]
    last: str | None


class KeepsValue(Keeps):
    """A value with parts of any length."""

    visit: hr.state.Value[Visit]

    def keep(self, n: int) -> None:
        visit = self.visit.value() or Visit([], None)
        self.visit.update(Visit([*visit.numbers, n], "x" * n if n % 2 else None))

    def seen(self) -> Any:
        return self.visit.value()

    def forget(self) -> None:
        self.visit.clear()


class KeepsList(Keeps):
    """Items."""

    items: hr.state.List[int]

    def keep(self, n: int) -> None:
        self.items.add(n)
        if n == 4:
            self.items.update(self.items.get()[-2:])

    def seen(self) -> Any:
        return self.items.get()

    def forget(self) -> None:
        self.items.clear()


class KeepsMap(Keeps):
    """Entries, one of them taken away now and then."""

    counts: hr.state.Map[str, float]

    def keep(self, n: int) -> None:
        name = f"name {n % 3}"
        self.counts[name] = (self.counts.get(name) or 0.0) + n / 2
        if n % 4 == 0:
            self.counts.remove("name 1")

    def seen(self) -> Any:
        return self.counts.items()

    def forget(self) -> None:
        self.counts.clear()


class KeepsReduced(Keeps):
    """A value that others are folded into."""

    total: hr.state.Reducing[int] = hr.state.keep(reduce=operator.add)

    def keep(self, n: int) -> None:
        self.total.add(n)

    def seen(self) -> Any:
        return self.total.get()

    def forget(self) -> None:
        self.total.clear()


class KeepsAggregate(Keeps):
    """An accumulator."""

    mean: hr.state.Aggregating[int, float] = hr.state.keep(aggregate=Average())

    def keep(self, n: int) -> None:
        self.mean.add(n)

    def seen(self) -> Any:
        return self.mean.get()

    def forget(self) -> None:
        self.mean.clear()


class KeepsAll(Keeps):
    """Several states beside each other, as descriptors in `open`."""

    def open(self, ctx: Any) -> None:
        """Ask for them."""
        state = hr.state
        self.first = ctx.get_state(state.ValueStateDescriptor("first", int))
        self.names = ctx.get_list_state(state.ListStateDescriptor("names", str))
        self.by_n = ctx.get_map_state(state.MapStateDescriptor("by n", int, value_type=str))
        self.most = ctx.get_reducing_state(
            state.ReducingStateDescriptor("most", int, reduce=max, forever=True)
        )

    def keep(self, n: int) -> None:
        if self.first.value() is None:
            self.first.update(n)
        self.names.add_all(["n"] * (n % 3))
        self.by_n.put(n, str(n))
        self.most.add(n)

    def seen(self) -> Any:
        return self.first.value(), self.names.get(), self.by_n.items(), self.most.get()

    def forget(self) -> None:
        for state in (self.first, self.names, self.by_n, self.most):
            state.clear()


class Lasting(Keeps):
    """What no timer forgets has to go by itself."""

    def forget(self) -> None:
        """Nothing."""


class ShortValue(Lasting, KeepsValue):
    """A value with a time to live."""

    visit: hr.state.Value[Visit] = SHORT  # type: ignore[assignment]


class ShortList(Lasting, KeepsList):
    """Items with a time to live."""

    items: hr.state.List[int] = SHORT  # type: ignore[assignment]


class ShortMap(Lasting, KeepsMap):
    """Entries with a time to live, by reading too."""

    counts: hr.state.Map[str, float] = TTL(9 * US, update="read_and_write")  # type: ignore[assignment]


class ShortReduced(Lasting, KeepsReduced):
    """A folded value with a time to live on the clock."""

    total: hr.state.Reducing[int] = hr.state.keep(
        reduce=operator.add, ttl=TTL(3 * US, time="processing")
    )


class ShortAggregate(Lasting, KeepsAggregate):
    """An accumulator with a time to live."""

    mean: hr.state.Aggregating[int, float] = hr.state.keep(aggregate=Average(), ttl=SHORT)


class OnTheClock(KeepsValue):
    """A timer of the clock for every row, besides the others."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Seen]:
        """As the others; it comes when the clock is two further."""
        yield from super().process_element(value, ctx)
        ctx.timers.register_processing_time(ctx.clock + 2 * US)

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Seen]:
        """Say by which clock."""
        yield Seen(ctx.key, -2, ctx.time_domain)
        yield from super().on_timer(timestamp, ctx)


class Meets(hr.KeyedCoProcessFunction):
    """Rows of two streams, paired by their key."""

    left: hr.state.Value[int]
    right: hr.state.Map[int, str]

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Seen]:
        """Keep the last, and show what waits on the other side."""
        self.left.update(value.n)
        ctx.timers.register_event_time(ctx.timestamp + 12 * US)
        yield Seen(ctx.key, value.n, str(self.right.items()))

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Seen]:
        """Keep all, and show the last of the other side."""
        self.right.put(value.code, value.name * 2)
        ctx.timers.register_event_time(ctx.timestamp + 12 * US)
        yield Seen(value.name, value.code, str(self.left.value()))

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Seen]:
        """Forget both."""
        yield Seen(ctx.key, -1, f"{self.left.value()} {len(self.right)}")
        self.left.clear()
        self.right.clear()


class Ruled(hr.KeyedBroadcastProcessFunction):
    """Rows that follow rules, and count how often they did."""

    rules: hr.state.Broadcast[str, int]
    obeyed: hr.state.Value[int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Seen]:
        """Multiply by the rule of the key."""
        rule = self.rules.get(ctx.key)
        if rule is not None:
            self.obeyed.update((self.obeyed.value() or 0) + 1)
            ctx.timers.register_event_time(ctx.timestamp + 12 * US)
            yield Seen(ctx.key, value.n * rule, str(self.obeyed.value()))

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Seen]:
        """A new rule, or none any more."""
        if value.code:
            self.rules.put(value.name, value.code)
        else:
            self.rules.remove(value.name)
        yield Seen(value.name, value.code, f"{len(self.rules)} rules")

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Seen]:
        """Show the rules, and forget the count."""
        yield Seen(ctx.key, -1, f"{self.obeyed.value()} {self.rules.items()}")
        self.obeyed.clear()


class RuledRows(hr.BroadcastProcessFunction):
    """Rows without keys that follow rules."""

    rules: hr.state.Broadcast[str, int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Seen]:
        """Show the rule that is meant, and how many there are."""
        yield Seen(str(value.key), value.n, f"{self.rules.get(str(value.key))} {len(self.rules)}")

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Seen]:
        """A new rule, or none any more."""
        if value.code:
            self.rules[value.name] = value.code
        else:
            self.rules.clear()
        yield Seen(value.name, value.code, str(self.rules.keys()))
