"""The oracle of window joins: every pair of every window is tried, and what is to be seen of a window is made from scratch.

Behind each phase of an epoch (the early rows, the tick, the other rows) the results of every window that has fired are
computed anew and compared with those that were shown before: what is missing comes out as "+I", what is too much as "-D".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.windows import Assigner
from tests.oracle.assigners import spans_of
from tests.oracle.epochs import Span, instant
from tests.oracle.joins.lookup import same_key

__all__ = ["JoinAnswer", "WindowJoinOracle"]

Row = dict[str, Any]
#: Numbers of a left and of a right row; None: there is none.
Pair = tuple[int | None, int | None]

_PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}


@dataclass
class JoinAnswer:
    """What one epoch gives: with the tick, behind it, and the rows of each side that are too late."""

    ticked: list[Row] = field(default_factory=list)
    settled: list[Row] = field(default_factory=list)
    late: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))


@dataclass
class _Contents:
    """One window: the numbers of its rows, and the results that were shown."""

    rows: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    shown: Counter[Pair] = field(default_factory=Counter)


class WindowJoinOracle:
    """What a window join must say; `names` are the columns of both sides. Rows that never match are in `errors`.

    >>> from headrace.windows import Window
    >>> oracle = WindowJoinOracle(Window(10, 10), [("k",), ("k",)], [("k", "a"), ("k", "b")], how="left")
    >>> rows = [SidedRow(5, {"k": 1, "a": 2}), SidedRow(6, {"k": 1, "b": 3}, 1)]
    >>> [(row["a"], row["b"]) for row in oracle.epoch(StepEpoch(-1, 9, (), rows)).ticked]
    [(2, 3)]
    """

    def __init__(
        self,
        window: Assigner,
        keys: Sequence[Sequence[str]],
        names: Sequence[Sequence[str]],
        *,
        how: str = "inner",
        lateness_us: int = 0,
        suffix: str = "_right",
    ) -> None:
        self._window = window
        self._keys = keys
        self._names = names
        self._how = how
        self._lateness_us = lateness_us
        self._suffix = suffix
        self._changes = lateness_us > 0 and how in _PRESERVED
        self._rows: list[Mapping[str, Any]] = []
        self._windows: dict[Span, _Contents] = {}
        self.errors: list[Row] = []
        self.null_keys = 0

    def epoch(self, epoch: StepEpoch) -> JoinAnswer:
        """One epoch."""
        answer = JoinAnswer()
        answer.ticked += self._take(epoch.early, epoch.before, answer)
        answer.ticked += self._show(epoch.before)
        answer.ticked += self._show(epoch.watermark)
        self._windows = {
            s: w for s, w in self._windows.items() if not self._over(s, epoch.watermark)
        }
        answer.settled += self._take(epoch.rows, epoch.watermark, answer)
        answer.settled += self._show(epoch.watermark)
        return answer

    def _take(self, rows: Iterable[Any], watermark: int, answer: JoinAnswer) -> list[Row]:
        """Put rows into their windows; the results of those that never match."""
        results: list[Row] = []
        for at, fields, side, _ in (SidedRow(*row) for row in rows):
            preserved = side in _PRESERVED.get(self._how, ())
            null = any(fields[key] is None for key in self._keys[side])
            if null and not preserved:
                self.errors.append(dict(fields))
                continue
            spans = spans_of(self._window, at, fields)
            spans = [span for span in spans if not self._over(span, watermark)]
            if not spans:
                answer.late[side].append(dict(fields))
                continue
            self.null_keys += null
            self._rows.append(fields)
            number = len(self._rows) - 1
            for span in spans:
                if null:
                    pair: Pair = (None, number) if side else (number, None)
                    results.append(self._row(span, pair, "+I"))
                else:
                    self._windows.setdefault(span, _Contents()).rows[side].append(number)
        return results

    def _show(self, watermark: int) -> list[Row]:
        """What has become true of windows that are at their end, and what is no longer."""
        results: list[Row] = []
        for span, contents in self._windows.items():
            if watermark >= span[1] - 1:
                true = Counter(self._join(*contents.rows))
                results += [self._row(span, p, "-D") for p in (contents.shown - true).elements()]
                results += [self._row(span, p, "+I") for p in (true - contents.shown).elements()]
                contents.shown = true
        return results

    def _join(self, left: Sequence[int], right: Sequence[int]) -> list[Pair]:
        """All results of a window, from scratch."""
        pairs: list[Pair] = [
            (mine, other) for mine in left for other in right if self._meet(mine, other)
        ]
        alone: list[Pair] = []
        for side in _PRESERVED.get(self._how, ()):
            partnered = {pair[side] for pair in pairs}
            lonely = [number for number in (left, right)[side] if number not in partnered]
            alone += [(None, number) if side else (number, None) for number in lonely]
        if self._how == "semi":
            return [
                (mine, None) for mine in sorted({pair[0] for pair in pairs if pair[0] is not None})
            ]
        return alone if self._how == "anti" else pairs + alone

    def _meet(self, left: int, right: int) -> bool:
        both = zip(self._keys[0], self._keys[1], strict=True)
        return all(same_key(self._rows[left][a], self._rows[right][b]) for a, b in both)

    def _row(self, span: Span, pair: Pair, change: str) -> Row:
        shared = [a for a, b in zip(*self._keys, strict=True) if a == b]
        left, right = (None if number is None else self._rows[number] for number in pair)
        row: Row = {name: None if left is None else left[name] for name in self._names[0]}
        for name in self._names[1] if self._how not in ("semi", "anti") else ():
            value = None if right is None else right[name]
            if name in shared:
                row[name] = value if left is None else row[name]
            else:
                row[name + self._suffix if name in self._names[0] else name] = value
        row |= {"window_start": instant(span[0]), "window_end": instant(span[1])}
        return row | {"change": change} if self._changes else row

    def _over(self, span: Span, watermark: int) -> bool:
        return watermark >= span[1] - 1 + self._lateness_us
