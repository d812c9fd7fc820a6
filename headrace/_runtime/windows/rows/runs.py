"""Segments added up run by run, with the results on the way.

The first segments are merged in rounds: the first of every run, then the second. Where one run has many, rounds would
be as many as there are, with next to nothing in each; from then on every segment is added to the one before it, then
the sums to those two before, four before, and so on, which takes few steps however many there are.

    segments      a    b     c      d
    step 1        a    ab    bc     cd
    step 2        a    ab    abc    abcd
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Fold
from headrace._runtime.windows.scratch import Scratch

__all__ = ["ROUNDS", "Runs"]

Integers = npt.NDArray[np.int64]

#: From so many segments on, sums are doubled instead.
ROUNDS = 24


class Runs:
    """Runs in `scratch`, one slot each, and the segments that come to them: their runs, their places there, their parts."""

    def __init__(
        self, folds: Sequence[Fold], scratch: Scratch, runs: Integers, places: Integers,
        parts: Sequence[Sequence[pa.Array]],
    ) -> None:  # fmt: skip
        self._folds = folds
        self._scratch = scratch
        self._runs = runs
        self._places = places
        self._parts = parts
        self._shown: list[tuple[Integers, list[pa.Array]]] = []

    def add_up(self, fired: Integers, positions: Integers) -> list[pa.Array]:
        """The results of these runs, each behind so many of its segments. Then the scratch holds all of them."""
        segments, firings = _by_number(self._places), _by_number(positions)
        for place in range(min(max(len(segments) + 1, len(firings)), ROUNDS + 1)):
            if place:
                self._merge(segments[place - 1])
            if place < len(firings) and len(firings[place]):
                self._show(firings[place], self._scratch, fired[firings[place]])
        if len(segments) > ROUNDS:
            self._double(fired, positions)
        return self._in_order()

    def _merge(self, segments: Integers) -> None:
        whole = len(segments) == len(self._runs)
        for fold, parts in zip(self._folds, self._parts, strict=True):
            chosen = parts if whole else [part.take(pa.array(segments)) for part in parts]
            fold.merge(self._scratch, self._runs[segments], chosen)

    def _double(self, fired: Integers, positions: Integers) -> None:
        """The segments that are left, in the order of their runs."""
        left = np.flatnonzero(self._places >= ROUNDS)
        left = left[np.lexsort((self._places[left], self._runs[left]))]
        depths = self._places[left] - ROUNDS
        heads = np.flatnonzero(depths == 0)
        sums = self._begun(left, heads)
        distance = 1
        while distance <= int(depths.max()):
            self._step(sums, np.flatnonzero(depths >= distance), distance)
            distance *= 2
        first = np.zeros(int(self._runs.max()) + 1, np.int64)
        first[self._runs[left[heads]]] = heads
        behind = np.flatnonzero(positions > ROUNDS)
        self._show(behind, sums, first[fired[behind]] + positions[behind] - 1 - ROUNDS)
        self._keep(sums, np.append(heads[1:], len(left)) - 1, self._runs[left[heads]])

    def _begun(self, left: Integers, heads: Integers) -> Scratch:
        """A slot for each segment; the first of a run also holds what came before."""
        sums = Scratch(self._folds, len(left))
        for fold, parts in zip(self._folds, self._parts, strict=True):
            fold.merge(sums, heads, fold.export(self._scratch, self._runs[left[heads]]))
            fold.merge(sums, np.arange(len(left)), [part.take(pa.array(left)) for part in parts])
        return sums

    def _step(self, sums: Scratch, places: Integers, distance: int) -> None:
        """To each of these sums the one so far before it is added."""
        added = Scratch(self._folds, len(places))
        every = np.arange(len(places))
        for fold in self._folds:
            fold.merge(added, every, fold.export(sums, places - distance))
            fold.merge(added, every, fold.export(sums, places))
        for spec in (spec for fold in self._folds for spec in fold.columns):
            sums.put(spec.name, places, added.get(spec.name, every))

    def _keep(self, sums: Scratch, tails: Integers, runs: Integers) -> None:
        for spec in (spec for fold in self._folds for spec in fold.columns):
            self._scratch.put(spec.name, runs, sums.get(spec.name, tails))

    def _show(self, who: Integers, source: Columns, slots: Integers) -> None:
        if len(who):
            self._shown.append((who, [fold.result(source, slots) for fold in self._folds]))

    def _in_order(self) -> list[pa.Array]:
        if not self._shown:
            nobody = np.empty(0, np.int64)
            return [fold.result(self._scratch, nobody) for fold in self._folds]
        order = pa.array(np.argsort(np.concatenate([who for who, _ in self._shown])))
        columns = zip(*(values for _, values in self._shown), strict=True)
        return [pa.concat_arrays(parts).take(order) for parts in columns]


def _by_number(numbers: Integers) -> list[Integers]:
    """The places of the zeros, of the ones, and so on."""
    if not len(numbers):
        return []
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], np.arange(1, int(numbers.max()) + 1))
    return list(np.split(order, edges))
