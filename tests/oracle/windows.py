"""The oracle of windows: every row of every window is kept, and each result is computed from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.aggregates import Aggregate
from headrace.evictors import Evictor
from headrace.evictors import count as last_rows
from headrace.functions import ProcessWindowFunction
from headrace.testing.epochs import StepEpoch, TimedRow
from headrace.triggers import Trigger
from headrace.windows import Assigner, Count
from tests.oracle.assigners import merged, spans_of, touching
from tests.oracle.computing import key_of
from tests.oracle.contents import Contents, Showing
from tests.oracle.epochs import Span
from tests.oracle.machines import Kind, Now, Verdict
from tests.oracle.translation import machine_of

__all__ = ["Answer", "WindowOracle"]

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass
class Answer:
    """What one epoch gives: with the tick, behind it, and the rows that are too late."""

    ticked: list[Row] = field(default_factory=list)
    settled: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)


class WindowOracle:
    """What a window step must say. Rows that cannot be used are kept in `errors`, side outputs in `sides`.

    >>> from headrace.aggregates import count
    >>> from headrace.testing.epochs import StepEpoch
    >>> from headrace.windows import Window
    >>> oracle = WindowOracle(Window(10, 10), 0, ("k",), [("rows", count())])
    >>> results, late = oracle.run([StepEpoch(-1, 3, [(5, {"k": 1})]), StepEpoch(3, 9)])
    >>> results[0]["rows"], results[0]["pane"], results[0]["firing"], late
    (1, 'on_time', 0, [])
    """

    def __init__(
        self,
        window: Assigner,
        lateness_us: int,
        keys: Sequence[str],
        aggregates: Iterable[tuple[str, Aggregate]],
        *,
        trigger: Trigger | None = None,
        accumulation: str = "accumulating",
        on_late: str = "side_output",
        evictor: Evictor | None = None,
        function: ProcessWindowFunction | None = None,
        weighted: bool = False,
    ) -> None:
        self._assigner = window
        self._lateness_us = lateness_us
        self._keys = tuple(keys)
        self._trigger = trigger
        self._own_windows = on_late == "own_window"
        if isinstance(window, Count) and window.slide:
            evictor = evictor or last_rows(window.size)
        self._showing = Showing(
            window, self._keys, list(aggregates), accumulation, evictor, function, weighted
        )
        self._windows: dict[Key, dict[Span, Contents]] = {}
        self._arrived = 0
        self._epoch = StepEpoch(0, 0)
        self._out: list[Row] = []
        self._late: list[Row] = []
        self._own: list[tuple[Key, int, TimedRow]] = []
        self.errors: list[Row] = []

    @property
    def sides(self) -> dict[str, list[Row]]:
        """Rows on side outputs so far."""
        return self._showing.sides

    def run(self, epochs: Iterable[tuple[Any, ...]]) -> tuple[list[Row], list[Row]]:
        """The results and the late rows of these epochs; call it again to go on."""
        answers = [self.epoch(StepEpoch(*epoch)) for epoch in epochs]
        results = [row for answer in answers for row in answer.ticked + answer.settled]
        return results, [row for answer in answers for row in answer.late]

    def epoch(self, epoch: StepEpoch) -> Answer:
        """One epoch: rows before the tick, the tick, rows behind it, and what follows from them."""
        self._epoch = epoch
        self._take(epoch.early, Now(epoch.before, epoch.clock_before, epoch.before))
        now = Now(epoch.watermark, epoch.clock, epoch.watermark)
        self._run_timers(now, ticking=True)
        ticked, self._out = self._out, []
        self._close(now)
        self._take(epoch.rows, now)
        self._run_timers(now, ticking=False)
        for key, contents in list(self._all()):
            self._do(key, contents, contents.machine.settle(now, closing=False), now)
        self._show_own(now)
        settled, self._out = self._out, []
        late, self._late = self._late, []
        return Answer(ticked, settled, late)

    # Rows

    def _take(self, rows: Sequence[TimedRow], now: Now) -> None:
        usable: dict[Key, list[tuple[int, TimedRow, list[Span]]]] = {}
        for row in rows:
            self._arrived += 1
            key = key_of(row, self._keys)
            spans = [] if None in key else spans_of(self._assigner, *row)
            if None in key or (self._assigner.merging and not spans):
                self.errors.append(dict(row[1]))
            else:
                usable.setdefault(key, []).append((self._arrived, row, spans))
        for key, arrivals in usable.items():
            placed = self._merge(key, arrivals, now) if self._assigner.merging else arrivals
            for number, row, spans in placed:
                self._add(key, number, row, spans, now)

    def _add(self, key: Key, number: int, row: TimedRow, spans: list[Span], now: Now) -> None:
        own = self._windows.setdefault(key, {})
        opened = [span for span in spans if span in own or not self._is_over(span, now)]
        if not opened:
            self._miss(key, number, row)
        for span in opened:
            if span not in own:
                own[span] = Contents(span, machine_of(self._trigger, span, self._assigner))
                own[span].machine.begin(now)
            own[span].rows.append((number, row))
            self._do(key, own[span], own[span].machine.row(now, row), now)

    def _merge(self, key: Key, arrivals: list[Any], now: Now) -> list[Any]:
        """Put live sessions together as these rows want it; the rows with the sessions that they end up in."""
        own = self._windows.setdefault(key, {})
        sessions = merged([*own, *(spans[0] for _, _, spans in arrivals)])
        for span in sessions:
            parts = [own[part] for part in list(own) if touching(part, span)]
            if parts and [part.span for part in parts] != [span]:
                for part in parts:
                    del own[part.span]
                own[span] = Contents.join(
                    span, parts, machine_of(self._trigger, span, self._assigner)
                )
                own[span].machine.join([part.machine for part in parts], now)
        return [
            (number, row, [span for span in sessions if touching(span, spans[0])])
            for number, row, spans in arrivals
        ]

    def _miss(self, key: Key, number: int, row: TimedRow) -> None:
        if self._own_windows:
            self._own.append((key, number, row))
        else:
            self._late.append(dict(row[1]))

    def _is_over(self, span: Span, now: Now) -> bool:
        if isinstance(self._assigner, Count):
            return False
        return now.watermark >= span[1] - 1 + self._lateness_us

    # Time

    def _all(self) -> Iterator[tuple[Key, Contents]]:
        for key in list(self._windows):
            for span in sorted(self._windows[key]):
                yield key, self._windows[key][span]

    def _run_timers(self, now: Now, *, ticking: bool) -> None:
        """Event time first; each in the order of its times; timers that are set on the way included."""
        kinds: tuple[Kind, Kind] = ("event", "processing")
        for kind in kinds:
            while due := [d for key, c in self._all() for d in self._due(key, c, kind, now)]:
                time, _, key, contents = min(due, key=lambda d: d[:2])
                then = now._replace(event=time) if kind == "event" else now
                verdict = contents.machine.timer(kind, time, then)
                self._do(key, contents, verdict, then, ticking=ticking)

    def _due(self, key: Key, contents: Contents, kind: Kind, now: Now) -> list[Any]:
        over = contents.span[1] - 1 + self._lateness_us
        return [
            (time, contents.span, key, contents)
            for its_kind, time in contents.machine.due(now)
            if its_kind == kind and (kind == "processing" or time <= over)
        ]

    def _close(self, now: Now) -> None:
        for key, contents in list(self._all()):
            if self._is_over(contents.span, now):
                self._do(key, contents, contents.machine.settle(now, closing=True), now)
                self._showing.close(key, contents, now)
                del self._windows[key][contents.span]

    # Results

    def _do(
        self, key: Key, contents: Contents, verdict: Verdict, now: Now, *, ticking: bool = False
    ) -> None:
        if verdict.fire and contents.rows:
            pane = self._pane(contents, now, ticking=ticking)
            self._out += self._showing.fire(key, contents, pane, now)
        if verdict.purge:
            contents.forget()

    def _pane(self, contents: Contents, now: Now, *, ticking: bool) -> str:
        last = contents.span[1] - 1
        if isinstance(self._assigner, Count):
            return "on_time"
        if min(now.watermark, now.event) < last:
            return "early"
        passes = ticking and self._epoch.before < last
        return "on_time" if passes and not contents.past else "late"

    def _show_own(self, now: Now) -> None:
        """Late rows in windows of their own, which are gone at once."""
        own, self._own = self._own, []
        for key in dict.fromkeys(key for key, _, _ in own):
            mine = [(number, row) for its, number, row in own if its == key]
            spans = [spans_of(self._assigner, *row) for _, row in mine]
            if self._assigner.merging:
                sessions = merged([each[0] for each in spans])
                spans = [[s for s in sessions if touching(s, each[0])] for each in spans]
            for span in sorted({span for each in spans for span in each}):
                rows = [pair for pair, each in zip(mine, spans, strict=True) if span in each]
                alone = Contents(span, machine_of(None, span, self._assigner), rows)
                self._out += self._showing.fire(key, alone, "own", now)
