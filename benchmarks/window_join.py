"""What a row costs in a window join, in this process, on one core: no Spark, no shuffle.

    python benchmarks/window_join.py

An epoch has 100,000 rows of each side, whose keys are so many that a key has two rows of each side in a window. Windows are as
long as it takes for each side to have the rows in them that the table says. `late` are left joins with as much
allowed lateness, of whose rows one in a hundred comes a window too late; `hops` are windows that begin every quarter of
their length, so every row meets four times. Costs are in processor time for each row of either side, the best of some
windows: all of it from the rows of a source to results, but for the commit, which is told apart.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from join_operator import Keys, Shard, in_batches, numbers, texts, two_streams
from rich.console import Console
from rich.table import Table

import headrace as hr
from headrace._runtime.operator import Moment
from headrace._runtime.rows import Rows
from headrace.watermarks import NO_WATERMARK

EPOCH_ROWS = 100_000
ROWS_OF_A_KEY = 2
SECOND_US = 1_000_000


@dataclass(frozen=True)
class Case:
    """A kind of join, the share of late rows, and how many windows a row is in."""

    how: Any
    late: float = 0
    windows: int = 1


CASES = {
    "inner": Case("inner"),
    "left": Case("left"),
    "full": Case("full"),
    "semi": Case("semi"),
    "anti": Case("anti"),
    "late": Case("left", late=0.01),
    "hops": Case("inner", windows=4),
}


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--state", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--texts", action="store_true", help="keys are texts, not whole numbers")
    parser.add_argument("--windows", type=int, default=4, help="measured windows")
    options = parser.parse_args()
    table = Table(
        "case", "rows a side", "feed us", "tick us", "settle us", "commit us", "results a row"
    )
    keys = texts if options.texts else numbers
    for name in options.only:
        for state in options.state:
            found = measure(CASES[name], state, options.windows, keys)
            table.add_row(name, f"{state:,}", *(f"{cost:.2f}" for cost in found))
    Console().print(table)


def measure(case: Case, state_rows: int, windows: int, keys: Keys) -> list[float]:
    """Feed, tick, settle and commit in microseconds a row, and results a row."""
    epochs = max(1, state_rows // EPOCH_ROWS)
    size_us = epochs * SECOND_US
    shard = _shard(case, size_us, keys)
    rng = np.random.default_rng(1)
    many = max(1, state_rows // ROWS_OF_A_KEY)
    spent: list[list[float]] = []
    made, before = 0, NO_WATERMARK
    # The first windows fill the state; so many rows of each are late that it is full two windows later.
    for number in range(epochs * (windows + 2)):
        sides = [_rows(case, many, number, size_us, rng, keys) for _ in (0, 1)]
        reached = number * SECOND_US - 1
        costs, results = shard.epoch(sides, Moment(before, reached, 0, 0))
        before = reached
        spent.append(costs)
        made += results if number >= 2 * epochs else 0
    cycles = [spent[at : at + epochs] for at in range(2 * epochs, len(spent), epochs)]
    sums = [[sum(column) for column in zip(*cycle, strict=True)] for cycle in cycles]
    rows = 2 * EPOCH_ROWS * epochs
    costs = [min(column) * 1e6 / rows for column in zip(*sums, strict=True)]
    return [*costs, made / (rows * windows)]


def _shard(case: Case, size_us: int, keys: Keys) -> Shard:
    left, right = two_streams(keys)
    size = timedelta(microseconds=size_us)
    window = hr.windows.Hopping(size, size / case.windows)
    lateness = size if case.late else timedelta(0)
    joined = left.window_join(
        right, window, on="id", how=case.how, allowed_lateness=lateness, uid="by"
    )
    return Shard(joined)


def _rows(case: Case, many: int, epoch: int, size_us: int, rng: Any, keys: Keys) -> list[Rows]:
    times = np.sort(rng.integers(epoch * SECOND_US, (epoch + 1) * SECOND_US, EPOCH_ROWS))
    times -= size_us * (rng.random(EPOCH_ROWS) < case.late)
    ids = rng.integers(0, many, EPOCH_ROWS)
    return in_batches(ids, ids, times, keys)


if __name__ == "__main__":
    main()
