"""The oracles of windows that follow rows: a look-back for each row, and numbers of rows.

look-back of 5      rows of one key      3    6  7        12
                    what 7 sees             [2 ... 7]              3, 6, 7
                    what 12 sees                   [7 ... 12]      7, 12

count(3)            rows of one key      a b c d e f g
                    windows              -----|-----|      g waits
count(3, 2)         at b: a b    at d: b c d    at f: d e f
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.aggregates import Aggregate
from headrace.testing.epochs import StepEpoch, TimedRow
from headrace.windows import Count, LookBack
from tests.oracle.computing import compute, key_of
from tests.oracle.windows import Answer

__all__ = ["CountOracle", "LookBackOracle"]

Row = dict[str, Any]
Key = tuple[Any, ...]


class LookBackOracle:
    """What a look-back step must say."""

    def __init__(
        self,
        window: LookBack,
        keys: Sequence[str],
        aggregates: Iterable[tuple[str, Aggregate]],
    ) -> None:
        self._size_us = window.size_us
        self._keys = tuple(keys)
        self._aggregates = list(aggregates)
        self._rows: dict[Key, list[TimedRow]] = {}
        self.errors: list[Row] = []

    def run(self, epochs: Iterable[tuple[Any, ...]]) -> tuple[list[Row], list[Row]]:
        """The results and the late rows of these epochs."""
        return _run(self, epochs)

    def epoch(self, epoch: StepEpoch) -> Answer:
        """One epoch. Nothing is left for settling: what comes behind the watermark is late."""
        late = self._take(epoch.early, epoch.before)
        ticked = [
            self._result(key, row)
            for key in self._rows
            for row in sorted(self._rows[key], key=lambda row: row[0])
            if epoch.before < row[0] <= epoch.watermark
        ]
        return Answer(ticked, [], late + self._take(epoch.rows, epoch.watermark))

    def _take(self, rows: Sequence[TimedRow], watermark: int) -> list[Row]:
        late = []
        for row in rows:
            key = key_of(row, self._keys)
            if None in key:
                self.errors.append(dict(row[1]))
            elif row[0] <= watermark:
                late.append(dict(row[1]))
            else:
                self._rows.setdefault(key, []).append(row)
        return late

    def _result(self, key: Key, row: TimedRow) -> Row:
        seen = [other for other in self._rows[key] if row[0] - self._size_us <= other[0] <= row[0]]
        return dict(row[1]) | {name: compute(a, seen) for name, a in self._aggregates}


class CountOracle:
    """What a step of count windows must say. No row is ever late."""

    def __init__(
        self, window: Count, keys: Sequence[str], aggregates: Iterable[tuple[str, Aggregate]]
    ) -> None:
        self._size = window.size
        self._slide = window.slide or window.size
        self._keys = tuple(keys)
        self._aggregates = list(aggregates)
        self._rows: dict[Key, list[TimedRow]] = {}
        self.errors: list[Row] = []

    def run(self, epochs: Iterable[tuple[Any, ...]]) -> tuple[list[Row], list[Row]]:
        """The results of these epochs, and no late rows."""
        return _run(self, epochs)

    def epoch(self, epoch: StepEpoch) -> Answer:
        """One epoch."""
        return Answer(self._take(epoch.early), self._take(epoch.rows), [])

    def _take(self, rows: Sequence[TimedRow]) -> list[Row]:
        results = []
        for row in rows:
            key = key_of(row, self._keys)
            if None in key:
                self.errors.append(dict(row[1]))
                continue
            mine = self._rows.setdefault(key, [])
            mine.append(row)
            if len(mine) % self._slide == 0:
                results.append(self._result(key, mine))
        return results

    def _result(self, key: Key, mine: list[TimedRow]) -> Row:
        result: Row = dict(zip(self._keys, key, strict=True))
        result |= {"pane": "on_time", "firing": len(mine) // self._slide - 1}
        seen = mine[-self._size :]
        return result | {name: compute(a, seen) for name, a in self._aggregates}


def _run(
    oracle: LookBackOracle | CountOracle, epochs: Iterable[tuple[Any, ...]]
) -> tuple[list[Row], list[Row]]:
    answers = [oracle.epoch(StepEpoch(*epoch)) for epoch in epochs]
    results = [row for answer in answers for row in answer.ticked + answer.settled]
    return results, [row for answer in answers for row in answer.late]
