"""What a row costs in a versioned or as-of join, in this process, on one core: no Spark, no shuffle.

    python benchmarks/asof_join.py

An epoch has 200,000 left rows. `versioned` has 10,000 keys, of which all change twenty times an epoch; `kept` as many keys as
the table says, each with a version, of which one in twenty changes in an epoch; `coming` 10,000 keys, and as many versions ahead of the
watermark; `waiting` as many left rows that look forward for a second each. Costs are in processor time for each
left row, the best of some epochs behind those that fill the state.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from join_operator import Keys, Shard, in_batches, numbers, texts, two_streams
from rich.console import Console
from rich.table import Table

from headrace._runtime.operator import Moment
from headrace.watermarks import NO_WATERMARK

EPOCH_ROWS = 200_000
FEW_KEYS = 10_000
SECOND_US = 1_000_000


@dataclass(frozen=True)
class Case:
    """Keys, versions an epoch, how far ahead of the watermark the versions are and how long left rows wait, in epochs."""

    keys: int
    versions: int
    ahead: float = 0
    wait: float = 0


CASES: dict[str, Callable[[int], Case]] = {
    "versioned": lambda _: Case(FEW_KEYS, EPOCH_ROWS),
    "kept": lambda state: Case(state, EPOCH_ROWS // 20),
    "coming": lambda state: Case(FEW_KEYS, EPOCH_ROWS // 2, ahead=2 * state / EPOCH_ROWS),
    "waiting": lambda state: Case(FEW_KEYS, EPOCH_ROWS // 2, wait=state / EPOCH_ROWS),
}


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--state", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--texts", action="store_true", help="keys are texts, not whole numbers")
    parser.add_argument("--epochs", type=int, default=5, help="measured epochs")
    options = parser.parse_args()
    table = Table("case", "state", "feed us", "tick us", "settle us", "commit us", "results a row")
    keys = texts if options.texts else numbers
    for name in options.only:
        for state in options.state[:1] if name == "versioned" else options.state:
            found = measure(CASES[name](state), options.epochs, keys)
            table.add_row(name, f"{state:,}", *(f"{cost:.2f}" for cost in found))
    Console().print(table)


def measure(case: Case, epochs: int, keys: Keys) -> list[float]:
    """Feed, tick, settle and commit in microseconds a left row, and results a left row."""
    shard = _shard(case, keys)
    rng = np.random.default_rng(1)
    fill = 2 + int(max(case.ahead, case.wait) * 1.5)
    spent, made, before = [], 0, NO_WATERMARK
    for number in range(fill + epochs):
        sides = [_left(case, number, rng), _right(case, number, rng)]
        batches = [in_batches(ids, ids, times, keys) for ids, times in sides]
        reached = number * SECOND_US - 1
        costs, made = shard.epoch(batches, Moment(before, reached, 0, 0))
        before = reached
        if number >= fill:
            spent.append(costs)
    costs = [min(column) * 1e6 / EPOCH_ROWS for column in zip(*spent, strict=True)]
    return [*costs, made / EPOCH_ROWS]


def _shard(case: Case, keys: Keys) -> Shard:
    left, right = two_streams(keys)
    if case.wait:
        tolerance = timedelta(seconds=case.wait)
        joined = left.join_asof(right, on="id", direction="forward", tolerance=tolerance, uid="by")
    else:
        joined = left.join_versioned(right, on="id", uid="by")
    return Shard(joined)


def _left(case: Case, epoch: int, rng: Any) -> tuple[Any, Any]:
    """The keys and times of an epoch's left rows, in order of time."""
    times = np.sort(rng.integers(epoch * SECOND_US, (epoch + 1) * SECOND_US, EPOCH_ROWS))
    return rng.integers(0, case.keys, EPOCH_ROWS), times


def _right(case: Case, epoch: int, rng: Any) -> tuple[Any, Any]:
    """The same of versions; the first epoch has one of each key."""
    rows = max(case.versions, case.keys) if epoch == 0 else case.versions
    ids = rng.permutation(rows) % case.keys if epoch == 0 else rng.integers(0, case.keys, rows)
    times = np.sort(rng.integers(epoch * SECOND_US, (epoch + 1) * SECOND_US, rows))
    return ids, times + int(case.ahead * SECOND_US)


if __name__ == "__main__":
    main()
