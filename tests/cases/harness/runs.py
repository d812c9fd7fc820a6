"""Which epochs a run of a case has, and what happens to the job on the way: pure data from a seed.

whole          as few epochs as the case allows
row by row     an epoch for each row, the streams in turn
seed 7         random cuts and turns, crashes, numbers of shards and tasks; other watermarks that are as true
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, Literal

from headrace._local.job import POINTS, CrashPoint
from tests.cases.harness.case import Case

__all__ = ["Run", "random_run", "row_by_row", "runs_of", "whole"]

#: Rows that may arrive in any order do so within so many places.
_DISORDER: Final = 3

#: (stream, partition)
Lane = tuple[str, int]
Watermarks = Literal["in-band", "bounded", "none"]


@dataclass(frozen=True)
class Run:
    """One way to run a case; its text is all that a failure needs to say."""

    name: str
    #: stream -> partition -> the rows of the case in order of arrival
    arrivals: Mapping[str, Sequence[Sequence[int]]]
    #: Rows that each epoch adds.
    epochs: Sequence[Mapping[Lane, int]]
    shards: int = 2
    tasks: int = 1
    watermarks: Watermarks = "in-band"
    crashes: Sequence[tuple[int, CrashPoint]] = ()
    rescale: Mapping[int, int] = field(default_factory=dict)

    def ends(self, stream: str) -> list[list[int]]:
        """The end of each partition of a stream in each epoch."""
        reached = [0] * len(self.arrivals[stream])
        found = []
        for epoch in self.epochs:
            reached = [end + epoch.get((stream, n), 0) for n, end in enumerate(reached)]
            found.append(reached)
        return found

    def __str__(self) -> str:
        cuts = {
            stream: [sum(ends) for ends in self.ends(stream)] for stream in sorted(self.arrivals)
        }
        how = {
            "watermarks": self.watermarks,
            "shards": self.shards,
            "tasks": self.tasks,
            "crashes": list(self.crashes),
            "rescale": dict(self.rescale),
        }
        lines = [f"run: {self.name}", f"rows after each epoch: {cuts}"]
        lines.append(", ".join(f"{name} {value}" for name, value in how.items()))
        if self._is_shuffled:
            lines.append(f"rows by partition: {dict(self.arrivals)}")
        return "\n".join(lines)

    @property
    def _is_shuffled(self) -> bool:
        return any(
            len(parts) > 1 or list(parts[0]) != sorted(parts[0]) for parts in self.arrivals.values()
        )


def runs_of(case: Case, seeds: int) -> Iterator[Run]:
    """All runs that a case has to pass."""
    yield whole(case)
    yield row_by_row(case)
    for seed in range(seeds):
        yield random_run(case, seed)


def whole(case: Case) -> Run:
    """An epoch from one border to the next."""
    turns = _as_written(case)
    return Run("whole", _in_order(case), [_epoch(stretch) for stretch in turns], shards=1)


def row_by_row(case: Case) -> Run:
    """An epoch for each row."""
    turns = [lane for stretch in _as_written(case) for lane in stretch]
    return Run("row by row", _in_order(case), [_epoch([lane]) for lane in turns] or [{}])


def random_run(case: Case, seed: int) -> Run:
    """One of many."""
    chance = random.Random(seed)
    free = not any(stream.watermarks for stream in case.streams.values())
    shuffled = case.any_order and free
    arrivals, turns = _shuffled(case, chance) if shuffled else (_in_order(case), _as_written(case))
    epochs = [epoch for stretch in turns for epoch in _cut(chance, stretch)]
    kinds: Sequence[Watermarks] = (
        ("bounded", "none") if shuffled else ("in-band", "bounded", "none")
    )
    places = range(len(epochs) + 2)
    return Run(
        f"seed {seed}",
        arrivals,
        epochs,
        shards=chance.choice((1, 2, 3, 5)),
        tasks=chance.choice((1, 2, 3)),
        watermarks=chance.choice(kinds) if free else "in-band",
        crashes=sorted({(chance.choice(places), chance.choice(POINTS)) for _ in range(4)}),
        rescale={
            epoch: chance.choice((1, 2, 3, 4))
            for epoch in sorted(chance.sample(places, k=min(2, len(places))))
        },
    )


def _in_order(case: Case) -> dict[str, list[list[int]]]:
    return {name: [list(range(len(stream.rows)))] for name, stream in case.streams.items()}


def _as_written(case: Case) -> list[list[Lane]]:
    """Stretch by stretch, whose row is next: the streams in turn, the rows of each in their order."""
    each = [
        [[(name, 0)] * len(stretch) for stretch in stream.stretches]
        for name, stream in case.streams.items()
    ]
    return [
        [lane for turn in zip_longest(*stretch) for lane in turn if lane is not None]
        for stretch in zip_longest(*each, fillvalue=[])
    ]


def _shuffled(
    case: Case, chance: random.Random
) -> tuple[dict[str, list[list[int]]], list[list[Lane]]]:
    arrivals: dict[str, list[list[int]]] = {}
    turns: list[list[Lane]] = []
    for name, stream in case.streams.items():
        partitions: list[list[int]] = [[] for _ in range(chance.choice((1, 2)))]
        for number, stretch in enumerate(stream.stretches):
            moved = {row: row + chance.uniform(0, _DISORDER) for row in stretch}
            lanes = [chance.randrange(len(partitions)) for _ in stretch]
            for row, lane in zip(sorted(stretch, key=moved.__getitem__), lanes, strict=True):
                partitions[lane].append(row)
            turns += [[] for _ in range(number + 1 - len(turns))]
            turns[number] += [(name, lane) for lane in lanes]
        arrivals[name] = partitions
    return arrivals, turns


def _cut(chance: random.Random, stretch: Sequence[Lane]) -> Iterator[dict[Lane, int]]:
    """Random turns of the streams, and random cuts between them."""
    order = list(stretch)
    chance.shuffle(order)
    often = chance.choice((0.1, 0.4, 0.8))
    begun: list[Lane] = []
    for lane in order:
        if begun and chance.random() < often:
            yield _epoch(begun)
            begun = []
        begun.append(lane)
    yield _epoch(begun)


def _epoch(lanes: Sequence[Lane]) -> dict[Lane, int]:
    return {lane: lanes.count(lane) for lane in dict.fromkeys(lanes)}
