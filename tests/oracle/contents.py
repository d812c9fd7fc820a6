"""The rows of one window of one key, and what a firing shows of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from types import SimpleNamespace
from typing import Any

from headrace.aggregates import Aggregate
from headrace.evictors import Evictor
from headrace.evictors import TimedRow as EvictorRow
from headrace.functions import ProcessWindowFunction
from headrace.testing.epochs import TimedRow
from headrace.windows import Assigner
from tests.oracle.computing import compute
from tests.oracle.epochs import Span, instant
from tests.oracle.machines import Machine, Now
from tests.oracle.written import State, shown_watermark, time_window

__all__ = ["Contents", "Showing"]

Row = dict[str, Any]
Key = tuple[Any, ...]
#: A row with the number under which it arrived.
Arrival = tuple[int, TimedRow]


@dataclass
class Contents:
    """One window of one key."""

    span: Span
    machine: Machine
    rows: list[Arrival] = field(default_factory=list)
    firings: int = 0
    #: It has fired at its end or behind it.
    past: bool = False
    #: Results that a retracting step has to take back before it shows the next.
    shown: list[Row] = field(default_factory=list)
    state: Any = None

    @classmethod
    def join(cls, span: Span, parts: Sequence[Contents], machine: Machine) -> Contents:
        """Several windows as one."""
        return cls(
            span,
            machine,
            sorted(row for part in parts for row in part.rows),
            max(part.firings for part in parts),
            any(part.past for part in parts),
            [row for part in parts for row in part.shown],
            min(parts, key=lambda part: part.span).state,
        )

    def forget(self) -> None:
        """A purge: the rows are gone, and what was shown of them stands."""
        self.rows, self.shown = [], []


@dataclass
class Showing:
    """How the results of a step look."""

    assigner: Assigner
    keys: tuple[str, ...]
    aggregates: list[tuple[str, Aggregate]]
    accumulation: str
    evictor: Evictor | None
    function: ProcessWindowFunction | None
    weighted: bool
    sides: dict[str, list[Row]] = field(default_factory=dict)
    _of_keys: dict[Key, Any] = field(default_factory=dict)

    def fire(self, key: Key, contents: Contents, pane: str, now: Now) -> list[Row]:
        """The rows of one firing."""
        window = time_window(contents.span)
        rows = contents.rows
        if self.evictor is not None:
            rows = _kept(rows, self.evictor.evict_before, window)
        if not rows:
            contents.rows = rows
            return []
        firing = max(1, contents.firings) if pane == "late" else contents.firings
        contents.firings, contents.past = firing + 1, contents.past or pane != "early"
        results = list(self._results(key, contents, rows, pane, firing, now))
        if self.evictor is not None:
            contents.rows = _kept(rows, self.evictor.evict_after, window)
        if self.accumulation == "discarding":
            contents.rows = []
        return results

    def close(self, key: Key, contents: Contents, now: Now) -> None:
        """The window leaves."""
        contents.machine.clear()
        if self.function is not None:
            self.function.clear(self._context(key, contents, "", 0, now))

    def _results(
        self,
        key: Key,
        contents: Contents,
        arrivals: list[Arrival],
        pane: str,
        firing: int,
        now: Now,
    ) -> Iterable[Row]:
        rows = [row for _, row in arrivals]
        values = {name: compute(a, rows, weighted=self.weighted) for name, a in self.aggregates}
        if self.function is not None:
            given = [SimpleNamespace(**row) for _, row in rows]
            given = [SimpleNamespace(**values)] if self.aggregates else given
            yield from self._call(key, contents, given, pane, firing, now)
            return
        result: Row = dict(zip(self.keys, key, strict=True))
        if self.assigner.timed:
            start, end = map(instant, contents.span)
            result |= {"window_start": start, "window_end": end}
        result |= {"pane": pane, "firing": firing}
        if self.accumulation != "retracting":
            yield result | values
            return
        yield from ({**row, "change": "-U"} for row in contents.shown)
        result |= {"change": "+U" if contents.shown else "+I"} | values
        contents.shown = [result]
        yield result

    def _call(
        self, key: Key, contents: Contents, given: list[Any], pane: str, firing: int, now: Now
    ) -> Iterable[Row]:
        assert self.function is not None
        context = self._context(key, contents, pane, firing, now)
        for made in self.function.process(key[0] if len(key) == 1 else key, context, given):
            if isinstance(made, tuple) and len(made) == 2 and hasattr(made[0], "schema"):
                context.output(*made)
            else:
                yield _fields(made)

    def _context(self, key: Key, contents: Contents, pane: str, firing: int, now: Now) -> Any:
        owner = type(self.function)
        contents.state = contents.state or State(owner)
        return SimpleNamespace(
            window=time_window(contents.span),
            watermark=shown_watermark(now.watermark),
            clock=instant(now.clock),
            pane=pane,
            firing=firing,
            window_state=contents.state,
            global_state=self._of_keys.setdefault(key, State(owner)),
            output=lambda tag, row: self.sides.setdefault(tag.name, []).append(_fields(row)),
        )


def _kept(rows: list[Arrival], evict: Any, window: Any) -> list[Arrival]:
    """What an evictor keeps; rows are told apart by their number."""
    shown = [EvictorRow(SimpleNamespace(**row, arrival_=n), instant(ts)) for n, (ts, row) in rows]
    kept = {row.row.arrival_ for row in evict(shown, window)}
    return [(number, row) for number, row in rows if number in kept]


def _fields(row: Any) -> Row:
    return asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row)
