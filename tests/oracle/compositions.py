"""Triggers made of triggers, in the way of Beam.

any_of        fires when one of them does; then all start anew
all_of        fires when all have fired since the last time; then all start anew
after_each    the first until it is over, then the second, ...; behind the last it is finished. One that can fire
              again and again (repeatedly, or_finally, after_each) is over when it is finished, others when they fire
repeatedly    one trigger, started anew when it is finished
or_finally    the first, until the second fires: for the last time
purging       each firing empties the window
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.testing.epochs import TimedRow
from tests.oracle.machines import NOTHING, Kind, Machine, Now, Verdict

__all__ = ["AfterEach", "AllOf", "AnyOf", "OrFinally", "Purging", "Repeatedly"]


class Composition(Machine):
    """Passes everything to its parts and lets `combine` decide."""

    def __init__(self, parts: Sequence[Machine]) -> None:
        self.parts = list(parts)

    def combine(self, verdicts: dict[int, Verdict], now: Now) -> Verdict:
        """One verdict out of those of the parts that were asked, by their number."""
        raise NotImplementedError

    def running(self) -> list[int]:
        """The parts that are asked."""
        return [number for number, part in enumerate(self.parts) if not part.finished]

    def begin(self, now: Now) -> None:
        self.finished = False
        for part in self.parts:
            part.begin(now)

    def row(self, now: Now, row: TimedRow) -> Verdict:
        return self._ask(lambda part: part.row(now, row), now)

    def due(self, now: Now) -> set[tuple[Kind, int]]:
        if self.finished:
            return set()
        return set().union(*(self.parts[number].due(now) for number in self.running()))

    def timer(self, kind: Kind, time: int, now: Now) -> Verdict:
        def ask(part: Machine) -> Verdict:
            return part.timer(kind, time, now) if (kind, time) in part.due(now) else NOTHING

        return self._ask(ask, now)

    def settle(self, now: Now, *, closing: bool) -> Verdict:
        return self._ask(lambda part: part.settle(now, closing=closing), now)

    def join(self, parts: Sequence[Composition], now: Now) -> None:
        self.finished = any(part.finished for part in parts)
        for number, part in enumerate(self.parts):
            part.join([other.parts[number] for other in parts], now)

    def clear(self) -> None:
        for part in self.parts:
            part.clear()

    def _ask(self, ask: Callable[[Machine], Verdict], now: Now) -> Verdict:
        if self.finished:
            return NOTHING
        return self.combine({number: ask(self.parts[number]) for number in self.running()}, now)


class AnyOf(Composition):
    """The first to fire fires for all."""

    def combine(self, verdicts: dict[int, Verdict], now: Now) -> Verdict:
        fires = any(v.fire for v in verdicts.values())
        if fires:
            self.begin(now)
        return Verdict(fires, any(v.purge for v in verdicts.values()))


class AllOf(Composition):
    """Waits for all."""

    def __init__(self, parts: Sequence[Machine]) -> None:
        super().__init__(parts)
        self.fired: dict[int, bool] = {}

    def begin(self, now: Now) -> None:
        super().begin(now)
        self.fired = {}

    def combine(self, verdicts: dict[int, Verdict], now: Now) -> Verdict:
        for number, verdict in verdicts.items():
            if verdict.fire:
                self.fired[number] = self.fired.get(number, False) or verdict.purge
        at_once = any(v.purge and not v.fire for v in verdicts.values())
        if len(self.fired) < len(self.parts):
            return Verdict(False, at_once)
        purges = at_once or any(self.fired.values())
        self.begin(now)
        return Verdict(True, purges)

    def join(self, parts: Sequence[Composition], now: Now) -> None:
        super().join(parts, now)
        for other in parts:
            assert isinstance(other, AllOf)
            for number, purges in other.fired.items():
                self.fired[number] = self.fired.get(number, False) or purges


class AfterEach(Composition):
    """One after the other."""

    def __init__(self, parts: Sequence[Machine]) -> None:
        super().__init__(parts)
        self.at = 0

    def begin(self, now: Now) -> None:
        self.finished, self.at = False, 0
        self.parts[0].begin(now)

    def running(self) -> list[int]:
        return [self.at]

    def combine(self, verdicts: dict[int, Verdict], now: Now) -> Verdict:
        (verdict,) = verdicts.values()
        current = self.parts[self.at]
        if current.finished if _fires_again(current) else verdict.fire:
            self.at += 1
            self.finished = self.at == len(self.parts)
            if not self.finished:
                self.parts[self.at].begin(now)
        return verdict

    def join(self, parts: Sequence[Composition], now: Now) -> None:
        others = [other for other in parts if isinstance(other, AfterEach)]
        self.finished = any(other.finished for other in others)
        self.at = max(other.at for other in others)
        if not self.finished:
            same = [other.parts[self.at] for other in others if other.at == self.at]
            self.parts[self.at].join(same, now)


class Repeatedly(Composition):
    """Never finished."""

    def combine(self, verdicts: dict[int, Verdict], now: Now) -> Verdict:
        (verdict,) = verdicts.values()
        if self.parts[0].finished:
            self.begin(now)
        return verdict

    def join(self, parts: Sequence[Composition], now: Now) -> None:
        super().join(parts, now)
        if self.parts[0].finished:
            self.begin(now)


class OrFinally(Composition):
    """The second ends it."""

    def combine(self, verdicts: dict[int, Verdict], now: Now) -> Verdict:
        last = verdicts.get(1, NOTHING)
        self.finished = last.fire or self.parts[0].finished
        fires = any(v.fire for v in verdicts.values())
        return Verdict(fires, any(v.purge for v in verdicts.values()))


class Purging(Composition):
    """Shown, then forgotten."""

    def combine(self, verdicts: dict[int, Verdict], now: Now) -> Verdict:
        (verdict,) = verdicts.values()
        self.finished = self.parts[0].finished
        return Verdict(verdict.fire, verdict.fire or verdict.purge)


def _fires_again(machine: Machine) -> bool:
    if isinstance(machine, Purging):
        return _fires_again(machine.parts[0])
    return isinstance(machine, Repeatedly | OrFinally | AfterEach)
