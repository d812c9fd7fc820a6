"""Reads back what a contender of windows.py wrote: Flink CSV, Headrace Parquet, both as sorted tuples."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

__all__ = ["read_results"]

BOUNDS = ["window_start", "window_end"]
OWN = {"look-back": ["ts", "amount"], "count": []}


def read_results(kind: str, directory: Path) -> list[tuple[int, ...]]:
    """All results: account, what the kind has of its own, events and total; times in milliseconds."""
    names = ["account", *OWN.get(kind, BOUNDS), "events", "total"]
    paths = [p for p in directory.rglob("*") if _is_result(p.relative_to(directory))]
    tables = [
        parquet.read_table(p).select(names) if p.suffix == ".parquet" else _csv(p, names)
        for p in paths
    ]
    return sorted(row for table in tables for row in zip(*map(_whole, table.columns), strict=True))


def _is_result(path: Path) -> bool:
    # Flink's files have no suffix; what begins with a dot or an underscore is nobody's result.
    return path.name.startswith("part-") or path.suffix == ".parquet"


def _csv(path: Path, names: list[str]) -> pa.Table:
    return csv.read_csv(path, csv.ReadOptions(column_names=names))


def _whole(column: pa.ChunkedArray) -> list[int]:
    if pa.types.is_timestamp(column.type):
        column = pc.cast(pc.cast(column, pa.timestamp("ms", column.type.tz)), pa.int64())
    return list(column.to_pylist())
