"""What a row costs in a look-up join, in this process, on one core: no Spark, no source, no sink.

    python benchmarks/lookup_join.py

Batches have 65,536 rows with keys drawn at random. The table has three columns beside the key and is a Parquet file in memory,
a `LookupFunction` whose cache holds all of it, or a plain function with a dict. Costs are in processor time for each row,
the best of some batches.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import headrace as hr
from headrace._runtime import registry
from headrace._runtime.rows import Rows
from headrace.connectors.memory import MemorySource
from headrace.lookups import Cache, FileTable, LookupFunction

BATCH_ROWS = 65_536
KEYS = (100, 10_000, 1_000_000)
ROUNDS = 10
COLUMNS = {"name": str, "level": int, "share": float}


@dataclass
class Case:
    """A table and a batch of rows with its keys."""

    path: Path
    rows: Rows
    found: dict[Any, Any]


class Kept(LookupFunction[Any, Any]):
    """Answers from a dict, once a key."""

    schema = COLUMNS

    def __init__(self, found: Mapping[Any, Any]) -> None:
        self.cache = Cache(size=len(found) + 1)
        self._found = found

    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Any]:
        """What is there."""
        return {key: self._found[key] for key in keys}


def main() -> None:
    """The table."""
    shown = Table("keys", "type", "file ns/row", "cached ns/row", "function ns/row")
    with tempfile.TemporaryDirectory() as directory:
        for keys in KEYS:
            for kind in ("integers", "texts"):
                case = made(Path(directory) / f"{keys}-{kind}.parquet", keys, kind)
                tables: list[Any] = [FileTable(case.path, key="key", check_every=None)]
                tables += [Kept(case.found), lambda asked, found=case.found: _picked(found, asked)]
                costs = [f"{cost(table, case.rows) * 1e9:.0f}" for table in tables]
                shown.add_row(f"{keys:,}", kind, *costs)
    Console().print(shown)


def made(path: Path, keys: int, kind: str) -> Case:
    """So many keys of a type, and rows that have them."""
    numbers = np.random.default_rng(7).permutation(keys) * 1_009  # far from each other
    names = pa.array([f"customer-{number}" for number in numbers])
    key = names if kind == "texts" else pa.array(numbers)
    table = pa.table({"key": key, "name": names, "level": numbers % 7, "share": numbers / 3})
    pq.write_table(table, path)
    drawn = pa.array(np.random.default_rng(8).integers(0, keys, BATCH_ROWS))
    batch = pa.record_batch({"id": np.arange(BATCH_ROWS), "key": key.take(drawn)})
    found = {row.pop("key"): row for row in table.to_pylist()}
    return Case(path, Rows(batch, np.arange(BATCH_ROWS)), found)


def cost(table: Any, rows: Rows) -> float:
    """Seconds of the processor a row."""
    env = hr.Environment("lookup")
    stream = env.from_source(MemorySource([], rows.batch.schema), uid="rows")
    schema = None if isinstance(table, FileTable | LookupFunction) else COLUMNS
    stream.join_lookup(table, on="key", schema=schema, uid="join")
    operator = registry.stateless(env.graph.nodes[-1])
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        out = sum(len(made) for _, made in operator.process(rows))
        spent.append(time.process_time() - begun)
        assert out == len(rows)
    return min(spent) / len(rows)


def _picked(found: Mapping[Any, Any], keys: Sequence[Any]) -> dict[Any, Any]:
    return {key: found[key] for key in keys}


if __name__ == "__main__":
    main()
