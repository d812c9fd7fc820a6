"""Streams of many epochs: numbers are given up and used again, and slices of the index come up and are cut."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from headrace import aggregates as agg
from headrace._graph.nodes import SessionAggregate
from headrace.testing.epochs import StepEpoch
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Session
from tests.runtime.windows.cases import GAPS, compare, row, step_node

AGGREGATES = {
    "rows": agg.count(),
    "total": agg.sum("number"),
    "all": agg.collect("number"),
    "words": agg.count_distinct("number"),
}
EPOCHS = 30


def stream(seed: int, spread: int) -> list[StepEpoch]:
    """Time moves in small and large steps, and now and then not at all; rows come up to `spread` around it."""
    random = np.random.default_rng(seed)
    mark, before, number = 0, NO_WATERMARK, 0
    epochs = []

    def rows(most: int) -> list[Any]:
        nonlocal number
        made = []
        for _ in range(random.integers(0, most)):
            number += 1
            gap = timedelta(microseconds=int(random.choice([1, 3, 20, spread // 4 + 1])))
            at = mark + int(random.integers(-spread // 2, spread))
            made.append((at, row(f"k{random.integers(5)}", number % 7, gap=gap)))
        return made

    for _ in range(EPOCHS):
        early = rows(4)
        mark += int(random.choice([0, 1, 5, spread // 8, spread // 2, 4 * spread]))
        epochs.append(StepEpoch(before, mark, rows(14), early))
        before = mark
    return [*epochs, StepEpoch(before, END_OF_TIME, (), rows(4))]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [40, 10**10])
@pytest.mark.parametrize("window", [Session(timedelta(microseconds=7)), Session.dynamic("gap")])
def test_many_epochs(seed: int, spread: int, window: Session) -> None:
    lateness_us = (0, 3, spread, 20 * spread)[seed % 4]
    on_late = ("side_output", "own_window")[seed % 2]
    node = step_node(
        SessionAggregate, window, AGGREGATES,
        schema=GAPS, lateness_us=lateness_us, on_late=on_late,
    )  # fmt: skip
    restores = {epoch: 1 + epoch % 3 for epoch in range(seed, EPOCHS, 7)}
    compare(node, stream(seed, spread), shards=2, restores=restores, crashes=[3, 17])
