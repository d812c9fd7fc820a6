"""What a row costs in an interval join, in this process, on one core: no Spark, no shuffle.

    python benchmarks/interval_join.py

Both streams have the same rate, so that a minute of each is as many rows as the table says, and an epoch has 200,000
rows of each. Every row has one partner, at most a minute away. `feed` is the half before the shuffle, `match` the one behind it:
both in processor time for each row of either stream, the best of some epochs behind those that fill the state.
"""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from join_operator import Keys, Shard, in_batches, numbers, texts, two_streams
from rich.console import Console
from rich.table import Table

from headrace._runtime.operator import Moment
from headrace._runtime.rows import Rows
from headrace.watermarks import NO_WATERMARK

EPOCH_ROWS = 200_000
MINUTE_US = 60_000_000
#: Partners are so far apart at most; the rest of the minute is for rows out of order.
APART_US = 55_000_000
KEYS: dict[str, Keys] = {
    "whole numbers": numbers,
    "texts": texts,
    "a thousand": lambda ids: pa.array(ids % 1000),
}


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--state", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--keys", nargs="+", default=["whole numbers", "texts"], choices=KEYS)
    parser.add_argument("--how", nargs="+", default=["inner", "full"])
    parser.add_argument("--epochs", type=int, default=5, help="measured epochs")
    options = parser.parse_args()
    table = Table("how", "keys", "rows a minute", "feed us", "match us", "commit us", "pairs a row")
    for how in options.how:
        for keys in options.keys:
            for state in options.state:
                found = measure(how, KEYS[keys], state, options.epochs)
                table.add_row(how, keys, f"{state:,}", *(f"{cost:.2f}" for cost in found))
    Console().print(table)


def measure(how: Any, keys: Keys, state_rows: int, epochs: int) -> list[float]:
    """Feed, match and commit in microseconds a row, and pairs a row."""
    left, right = two_streams(keys)
    minute = timedelta(microseconds=MINUTE_US)
    joined = left.interval_join(right, on="id").between(-minute, minute, how=how, uid="near")
    shard = Shard(joined)
    rng = np.random.default_rng(1)
    fill = -(-2 * state_rows // EPOCH_ROWS)
    spent, pairs, before = [], 0, NO_WATERMARK
    for number in range(fill + epochs):
        sides = [_rows(side, number, state_rows, keys, rng) for side in (0, 1)]
        reached = int(number * EPOCH_ROWS * MINUTE_US / state_rows) - 1
        costs, made = shard.epoch(sides, Moment(before, max(before, reached), 0, 0))
        feed, tick, settle, commit = costs
        before = max(before, reached)
        if number >= fill:
            spent.append([feed, tick + settle, commit])
            pairs = made
    rows = 2 * EPOCH_ROWS
    return [*(min(column) * 1e6 / rows for column in zip(*spent, strict=True)), pairs / rows]


def _rows(side: int, epoch: int, state_rows: int, keys: Keys, rng: Any) -> list[Rows]:
    """Row n of either side stands near n in time; the partner of a row has the same number, at most a minute away."""
    number = np.arange(epoch * EPOCH_ROWS, (epoch + 1) * EPOCH_ROWS)
    per_row = MINUTE_US / state_rows
    times = (number * per_row).astype(np.int64) + rng.integers(0, 1000, EPOCH_ROWS)
    # The right has the numbers of one minute in another order, shifted against those of the left.
    away = min(int(APART_US / per_row), EPOCH_ROWS // 4)
    ids = number if side == 0 else number - away + (number * 7919) % 97
    return in_batches(ids, number, times, keys)


if __name__ == "__main__":
    main()
