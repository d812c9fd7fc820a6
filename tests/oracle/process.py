"""A process function, interpreted: one row at a time, dicts for state, a set of timers, a copy of all to undo.

One epoch, in this order; what the first two make goes out before the tick of the next step:

    early rows     judged by the watermark before
    tick           what has outlived its time goes; then timers up to the watermark fire, the earliest first,
                   then those of the clock, and again until none is left. With `ordered`, rows that waited come
                   among the timers, each call sees the watermark just before it (a timer: its own time), and
                   nothing goes but by that
    rows           in the order of their arrival; those of the first input first, but broadcast ones, in the
                   order of their place, before all others
    settle         timers that these rows set at or before the watermark fire; what has outlived its time by then
                   goes

A timer fires once, however often it was set, and may set others. Its results have its time. With `on_error="dead_letter"` a call that fails
has done nothing, and its row, or what tells its timer, is a dead letter.

Compare results as a set. What only the engine has (metrics, the number of the shard) is made of nothing here.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

from headrace._graph.nodes import ERRORS, LATE, MAIN, KeyedProcess
from headrace.outputs import OutputTag
from headrace.state import StateDescriptor, StateSpec
from headrace.testing.epochs import SidedRow, StepEpoch, TimedRow
from headrace.watermarks import NO_WATERMARK
from tests.oracle.computing import same_nan
from tests.oracle.epochs import instant, micros
from tests.oracle.kept import KINDS, Kept, Now, expired
from tests.oracle.written import shown_watermark

__all__ = ["ProcessOracle", "Said"]

Rows = Mapping[str, Sequence[TimedRow]]
Key = tuple[Any, ...]
#: (domain, time, key)
Timer = tuple[str, int, Key]


class Said(NamedTuple):
    """The rows of one epoch by output, with their timestamps."""

    ticked: Rows
    settled: Rows


@dataclass
class World:
    """All that a call can change, and all that is undone."""

    #: key -> state -> slot -> (value, touched); broadcast state belongs to no key: ()
    state: dict[Key, dict[str, Any]] = field(default_factory=dict)
    timers: set[Timer] = field(default_factory=set)
    said: dict[str, list[TimedRow]] = field(default_factory=lambda: defaultdict(list))


class ProcessOracle:
    """What a keyed process step must say."""

    def __init__(self, node: KeyedProcess) -> None:
        self.node = node
        self._function = copy.deepcopy(node.function)
        self._specs = {spec.name: spec for spec in node.states}
        self._now = Now((), 0, 0, 0)
        self._waiting: list[SidedRow] = []
        #: With `ordered`, the watermark that calls see: no later than they, whatever the epoch's is.
        self._passed = NO_WATERMARK
        self.world = World()
        handles = {name: self._handle(spec) for name, spec in self._specs.items()}
        vars(self._function).update(handles)
        self._function.open(_Opening(handles))

    def run(self, epochs: Iterable[tuple[Any, ...]]) -> dict[str, list[TimedRow]]:
        """All rows of these epochs by output, with their timestamps."""
        rows: dict[str, list[TimedRow]] = defaultdict(list)
        for epoch in epochs:
            for said in self.epoch(StepEpoch(*epoch)):
                for output, more in said.items():
                    rows[output] += more
        return rows

    def epoch(self, epoch: StepEpoch) -> Said:
        """One epoch."""
        now = Now((), 0, epoch.watermark, epoch.clock)
        self._rows(epoch.early, now._replace(watermark=epoch.before))
        self._passed = epoch.before
        if self.node.ordered:
            self._deliver(now)
        else:
            self._expire(now)
        self._fire(now)
        ticked = self._take()
        self._rows(epoch.rows, now)
        self._fire(now)
        self._expire(now)
        return Said(ticked, self._take())

    def _rows(self, rows: Sequence[Any], now: Now) -> None:
        sided = [SidedRow(*row) for row in rows]
        if self.node.kind == "broadcast":
            # Rules in the order of their sources, then rows as they came.
            sided.sort(key=lambda row: row.place if row.side == 1 else ())
        first = 1 if self.node.kind == "broadcast" else 0
        for row in sorted(sided, key=lambda row: row.side != first):
            self._row(row, now)

    def _row(self, row: SidedRow, now: Now) -> None:
        key = zip(self.node.keys[row.side], self._key(row), strict=True)
        if missing := [f"null key '{name}'" for name, value in key if value is None]:
            self._dead(row, ", ".join(missing))
        elif not self.node.ordered:
            self._process(row, now)
        elif row.at <= now.watermark:
            columns = dict.fromkeys(self.node.output_schema(LATE).names)
            self.world.said[LATE].append((row.at, columns | dict(row.fields)))
        else:
            self._waiting.append(row)

    def _deliver(self, now: Now) -> None:
        """Rows that waited, in the order of their time, and timers among them."""
        due = [row for row in self._waiting if row.at <= now.watermark]
        self._waiting = [row for row in self._waiting if row.at > now.watermark]
        for row in sorted(due, key=lambda row: (row.at, row.side, row.place)):
            self._fire_kind("event", row.at - 1, now)
            self._passed = row.at - 1
            self._process(row, now._replace(watermark=self._passed))

    def _process(self, row: SidedRow, now: Now) -> None:
        key = self._key(row)
        self._now = now._replace(key=key, at=row.at)
        name = _METHODS[self.node.kind][row.side]
        context = self._context()
        call = getattr(self._function, name)
        self._call(lambda: call(SimpleNamespace(**row.fields), context), row)

    def _fire(self, now: Now) -> None:
        """Timers of both kinds, until none is due."""
        while self._fire_kind("event", now.watermark, now) | self._fire_kind(
            "processing", now.clock, now
        ):
            pass

    def _fire_kind(self, domain: str, reached: int, now: Now) -> bool:
        fired = False
        while due := [t for t in self.world.timers if t[0] == domain and t[1] <= reached]:
            fired = True
            self._on_timer(min(due), now)
        return fired

    def _on_timer(self, timer: Timer, now: Now) -> None:
        domain, at, key = timer
        self.world.timers.discard(timer)
        self._passed = max(self._passed, at) if domain == "event" else now.watermark
        watermark = self._passed if self.node.ordered else now.watermark
        self._now = now._replace(key=key, at=at, watermark=watermark)
        context = self._context(time_domain=domain)
        letter = {"key": context.key, "timer": instant(at).isoformat(), "domain": domain}
        self._call(lambda: self._function.on_timer(instant(at), context), SidedRow(at, letter))

    def _call(self, call: Callable[[], Any], letter: SidedRow) -> None:
        before = copy.deepcopy(self.world) if self.node.on_error == "dead_letter" else None
        try:
            for made in call() or ():
                tagged = isinstance(made, tuple) and isinstance(made[0], OutputTag)
                self._say(*(made if tagged else (None, made)))
        except Exception as error:
            if before is None:
                raise
            self.world = before
            self._dead(letter, f"{type(error).__name__}: {error}")

    def _say(self, tag: OutputTag | None, made: Any) -> None:
        fields = asdict(made) if is_dataclass(made) else dict(made)  # type: ignore[arg-type]
        self.world.said[tag.name if tag else MAIN].append((self._now.at, fields))

    def _dead(self, row: SidedRow, cause: str) -> None:
        self.world.said[ERRORS].append((row.at, {"cause": cause, "payload": dict(row.fields)}))

    def _expire(self, now: Now) -> None:
        for states in self.world.state.values():
            for name, pieces in states.items():
                for slot, (_, touched) in list(pieces.items()):
                    if expired(self._specs[name], touched, now):
                        del pieces[slot]

    def _take(self) -> Rows:
        said, self.world.said = self.world.said, defaultdict(list)
        return said

    def _key(self, row: SidedRow) -> Key:
        return tuple(same_nan(row.fields[name]) for name in self.node.keys[row.side])

    def _handle(self, spec: StateSpec) -> Kept:
        def pieces() -> dict[Any, Any]:
            key = () if spec.kind == "broadcast" else self._now.key
            mine: dict[Any, Any] = self.world.state.setdefault(key, {}).setdefault(spec.name, {})
            return mine

        return KINDS[spec.kind](spec, pieces, lambda: self._now)

    def _context(self, **more: Any) -> SimpleNamespace:
        key = self._now.key
        return SimpleNamespace(
            timestamp=instant(self._now.at),
            key=key[0] if len(key) == 1 else key,
            watermark=shown_watermark(self._now.watermark),
            clock=instant(self._now.clock),
            timers=_Timers(self),
            output=self._say,
            uid=self.node.uid,
            shard=0,
            metrics=_Unmeasured(),
            **more,
        )


class _Timers:
    """`ctx.timers`."""

    def __init__(self, oracle: ProcessOracle) -> None:
        def of(domain: str, act: str) -> Callable[[datetime], None]:
            def change(when: datetime) -> None:
                # The set itself is another one after each undoing.
                getattr(oracle.world.timers, act)((domain, micros(when), oracle._now.key))

            return change

        self.register_event_time = of("event", "add")
        self.delete_event_time = of("event", "discard")
        self.register_processing_time = of("processing", "add")
        self.delete_processing_time = of("processing", "discard")


class _Opening:
    """The context of `open`: state for descriptors."""

    def __init__(self, handles: Mapping[str, Kept]) -> None:
        self._handles = handles

    def get_state(self, descriptor: StateDescriptor) -> Kept:
        """The state of that name."""
        return self._handles[descriptor.name]

    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state


class _Unmeasured:
    """Takes every number of `ctx.metrics` and keeps none."""

    def __getattr__(self, name: str) -> Callable[..., _Unmeasured]:
        return lambda *_: self


_METHODS = {
    "keyed": ("process_element",),
    "co": ("process_element1", "process_element2"),
    "broadcast": ("process_element", "process_broadcast_element"),
}
