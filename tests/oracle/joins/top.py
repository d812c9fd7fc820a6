"""The oracle of the best pair of each key: all pairs of what came so far, ranked from scratch behind every phase."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.testing.epochs import SidedRow, StepEpoch
from tests.oracle.computing import same_nan

__all__ = ["TopPairOracle"]

Row = dict[str, Any]
Key = tuple[Any, ...]


class TopPairOracle:
    """What a join of a `first()` with a `top()` behind it must say, for two inputs with distinct names of columns.

    `one` is the input of which the first row of a key counts; `better` is a key for `min`, so that the best pair is the
    least, and of equal ones the one whose other row came first.
    """

    def __init__(
        self,
        keys: Sequence[Sequence[str]],
        one: int,
        where: Callable[[Row], bool],
        better: Callable[[Row], Any],
    ) -> None:
        self._keys = keys
        self._one = one
        self._where = where
        self._better = better
        self._firsts: dict[Key, Row] = {}
        self._others: dict[Key, list[Row]] = {}
        self._shown: dict[Key, Row] = {}
        self.errors: list[Row] = []

    def epoch(self, epoch: StepEpoch) -> list[Row]:
        """The changes of one epoch."""
        return self._phase(epoch.early) + self._phase(epoch.rows)

    def _phase(self, rows: Sequence[SidedRow]) -> list[Row]:
        for row in rows:
            key = tuple(same_nan(row.fields[name]) for name in self._keys[row.side])
            if None in key:
                self.errors.append(dict(row.fields))
            elif row.side == self._one:
                self._firsts.setdefault(key, dict(row.fields))
            else:
                self._others.setdefault(key, []).append(dict(row.fields))
        return [change for key in self._firsts for change in self._changes(key)]

    def _changes(self, key: Key) -> list[Row]:
        pairs = [{**self._firsts[key], **other} for other in self._others.get(key, [])]
        best = min(filter(self._where, pairs), key=self._better, default=None)
        shown = self._shown.get(key)
        if best is None or best == shown:
            return []
        self._shown[key] = best
        if shown is None:
            return [best | {"change": "+I"}]
        return [shown | {"change": "-U"}, best | {"change": "+U"}]
