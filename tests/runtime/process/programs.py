"""Process functions that do what their rows say: a program is data, a list of operations for each row.

    {"key": "a", "n": 7, "program": '[["put", "seen", "x", 3], ["timer", 4], ["look", "seen"]]'}

What `on_timer` does depends on the time of the timer: it has a short list of programs of its own. All that
a function can see of its surroundings goes into what it says, so a difference anywhere is a difference in a row.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import headrace as hr
from headrace.state import (
    TTL,
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)

__all__ = [
    "ASIDE",
    "ELSEWHERE",
    "INPUT",
    "OTHER",
    "RULES",
    "STATES",
    "BroadcastProgram",
    "CoProgram",
    "Program",
    "Told",
    "Touch",
]

INPUT = {"key": str, "n": int, "program": str}
#: The second input of a program with two, and the broadcast one.
OTHER = {"n": int, "name": str, "code": str}
RULES = {"n": int, "rule": str}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
US = timedelta(microseconds=1)
#: How many timers of a key may set others: time runs to its end, and so must a test.
MOST_CHAINED = 6

Operation = Sequence[Any]
#: What happens to a state at a time.
Touch = Callable[[Any, Any], None]


@dataclass
class Told:
    """What a program says."""

    key: str | None
    n: int
    what: str
    at: int | None
    watermark: int | None
    clock: int
    domain: str | None


ASIDE = hr.OutputTag("aside", {"key": str, "n": int, "what": str})
ELSEWHERE = hr.OutputTag("elsewhere", {"n": int})


@dataclass
class Mean:
    """An accumulator."""

    total: int
    count: int


class Average(hr.AggregateFunction):
    """The mean of numbers."""

    def create_accumulator(self) -> Mean:
        return Mean(0, 0)

    def add(self, value: int, accumulator: Mean) -> Mean:
        return Mean(accumulator.total + value, accumulator.count + 1)

    def get_result(self, accumulator: Mean) -> float:
        return accumulator.total / accumulator.count

    def merge(self, a: Mean, b: Mean) -> Mean:
        return Mean(a.total + b.total, a.count + b.count)


def _ttl(units: int, **said: Any) -> Callable[[int], TTL]:
    return lambda unit: TTL(units * unit * US, **said)


_FORMS: dict[str, Callable[[str, TTL | None], StateDescriptor]] = {
    "value": lambda name, ttl: ValueStateDescriptor(name, int, ttl=ttl),
    "word": lambda name, ttl: ValueStateDescriptor(name, str, ttl=ttl),
    "list": lambda name, ttl: ListStateDescriptor(name, int, ttl=ttl),
    "map": lambda name, ttl: MapStateDescriptor(name, str, int, ttl=ttl),
    "reducing": lambda name, ttl: ReducingStateDescriptor(name, int, ttl=ttl, reduce=operator.add),
    "aggregating": lambda name, ttl: AggregatingStateDescriptor(
        name, float, ttl=ttl, aggregate=Average()
    ),
}
_TTLS: dict[str, Callable[[int], TTL | None]] = {
    "": lambda _: None,
    "_ttl": _ttl(5),
    "_read": _ttl(6, update="read_and_write"),
    "_clock": lambda _: TTL(4 * US, time="processing"),
}
#: name -> (form, time to live by the unit of time): every form with every time to live
STATES = {form + ttl: (form, _TTLS[ttl]) for form in _FORMS for ttl in _TTLS}


class _Interpreter:
    """What all programs do: operations on state, timers and outputs."""

    #: Declared, so that there is one state of each spelling; how often a timer of this key has fired.
    fired: hr.state.Value[int] = hr.state.keep(forever=True)
    aside = ASIDE

    def __init__(
        self, uses: Sequence[str], on_timers: Sequence[Sequence[Operation]] = (), unit: int = 1
    ) -> None:
        self.uses = tuple(uses)
        self.on_timers = tuple(on_timers)
        self.unit = unit

    def open(self, ctx: Any) -> None:
        """The states that are used, and no others."""
        for name in self.uses:
            form, ttl = STATES[name]
            asked = _ASKED[form](ctx)
            setattr(self, name, asked(_FORMS[form](name, ttl(self.unit))))

    def close(self) -> None:
        """Nothing."""

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Told]:
        """What the time of the timer says."""
        fired = (self.fired.value() or 0) + 1
        self.fired.update(fired)
        at = (timestamp - EPOCH) // US
        yield _told(ctx, -fired, f"timer {at}")
        if self.on_timers:
            chosen = self.on_timers[at // self.unit % len(self.on_timers)]
            yield from self._act(chosen, -fired, ctx, chained=fired)

    def _act(
        self, program: Sequence[Operation], n: int, ctx: Any, chained: int = 0
    ) -> Iterator[Told]:
        for verb, *arguments in program:
            if verb == "fail":
                raise ValueError(f"{n} was asked to fail")
            if verb == "look":
                yield _told(ctx, n, f"{arguments[0]} {self._look(*arguments)}")
            elif verb == "aside":
                yield ASIDE, {"key": str(ctx.key), "n": n, "what": str(ctx.timestamp)}  # type: ignore[misc]
            elif verb == "elsewhere":
                ctx.output(ELSEWHERE, {"n": n})
            elif verb in _TIMERS:
                if chained <= MOST_CHAINED or verb.startswith("delete"):
                    _TIMERS[verb](ctx, arguments[0], self.unit)
            else:
                _CHANGES[verb](getattr(self, arguments[0]), *arguments[1:])

    def _look(self, name: str, *keys: str) -> str:
        state, form = getattr(self, name), STATES[name][0]
        if form == "map":
            seen: Any = [state.get(key, -1) for key in keys] if keys else sorted(state.items())
        elif form in ("value", "word"):
            seen = state.value()
        else:
            seen = state.get()
        return json.dumps(seen)


def _told(ctx: Any, n: int, what: str, key: Any = ...) -> Told:
    return Told(
        key=ctx.key if key is ... else key,
        n=n,
        what=what,
        at=_us(ctx.timestamp),
        watermark=_us(ctx.watermark),
        clock=(ctx.clock - EPOCH) // US,
        domain=getattr(ctx, "time_domain", None),
    )


def _us(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // US


_ASKED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "value": lambda ctx: ctx.get_state,
    "word": lambda ctx: ctx.get_state,
    "list": lambda ctx: ctx.get_list_state,
    "map": lambda ctx: ctx.get_map_state,
    "reducing": lambda ctx: ctx.get_reducing_state,
    "aggregating": lambda ctx: ctx.get_aggregating_state,
}
_CHANGES: dict[str, Callable[..., Any]] = {
    "set": lambda state, value: state.update(value),
    "more": lambda state, value: state.update((state.value() or 0) + value),
    "longer": lambda state, value: state.update((state.value() or "") + "abcdefgh"[:value]),
    "add": lambda state, value: state.add(value),
    "add_all": lambda state, *values: state.add_all(values),
    "replace": lambda state, *values: state.update(values),
    "put": lambda state, key, value: state.put(key, value),
    "put_all": lambda state, value, *keys: state.put_all(dict.fromkeys(keys, value)),
    "bump": lambda state, key: operator.setitem(state, key, state[key] + 1 if key in state else 0),
    "remove": lambda state, key: state.remove(key),
    "drop": lambda state, key: operator.delitem(state, key) if key in state else None,
    "clear": lambda state: state.clear(),
}
_TIMERS: dict[str, Callable[[Any, int, int], None]] = {
    "timer": lambda ctx, by, unit: ctx.timers.register_event_time(ctx.timestamp + by * unit * US),
    "delete": lambda ctx, by, unit: ctx.timers.delete_event_time(ctx.timestamp + by * unit * US),
    "clock_timer": lambda ctx, by, _: ctx.timers.register_processing_time(ctx.clock + by * US),
    "delete_clock": lambda ctx, by, _: ctx.timers.delete_processing_time(ctx.clock + by * US),
}


class Program(_Interpreter, hr.KeyedProcessFunction):
    """One input."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Told]:
        """What the row says."""
        yield from self._act(json.loads(value.program), value.n, ctx)


class CoProgram(_Interpreter, hr.KeyedCoProcessFunction):
    """Two inputs with other columns, keyed by columns of other names."""

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Told]:
        """What the row says."""
        yield from self._act(json.loads(value.program), value.n, ctx)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Told]:
        """What the row says."""
        yield _told(ctx, value.n, "second")
        yield from self._act(json.loads(value.code), value.n, ctx)


class BroadcastProgram(_Interpreter, hr.KeyedBroadcastProcessFunction):
    """Rules for all keys, that every row looks at before it does what it says."""

    rules: hr.state.Broadcast[str, int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Told]:
        """What the row says, behind the rules."""
        yield _told(ctx, value.n, f"rules {sorted(self.rules.items())} {self.rules.get('x')}")
        yield from self._act(json.loads(value.program), value.n, ctx)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Told]:
        """Change the rules."""
        for verb, *arguments in json.loads(value.rule):
            if verb == "fail":
                raise ValueError(f"{value.n} was asked to fail")
            if verb == "elsewhere":
                ctx.output(ELSEWHERE, {"n": value.n})
            else:
                _CHANGES[verb](self.rules, *arguments)
        yield _told(ctx, value.n, f"now {sorted(self.rules.items())}", key=None)

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Told]:
        """Timers see the rules too."""
        yield _told(ctx, 0, f"rules {sorted(self.rules.items())}")
        yield from super().on_timer(timestamp, ctx)
