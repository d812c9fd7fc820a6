"""Reads back what a contender of joins.py wrote, as sorted tuples: Flink CSV or JSON, Headrace Parquet.

Where results change, the answer is what is left: Headrace says what it withdraws, Flink's row replaces the one before it of
the same id.
"""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from join_answers import COLUMNS, Answer
from pyarrow import csv, parquet

__all__ = ["read_results"]

WITHDRAWN = ("-U", "-D")
REPLACING = ("q9",)
TIMES = ("date_time", "expires", "bid_date_time")
_EPOCH = datetime.fromisoformat("1970-01-01T00:00Z")


def read_results(kind: str, directory: Path) -> list[Answer]:
    """All results of a kind; times in milliseconds."""
    left: Counter[Answer] = Counter()
    for path in directory.rglob("*.parquet"):
        _take(left, parquet.read_table(path), COLUMNS[kind])
    # Flink's files have no suffix; what begins with a dot or an underscore is nobody's result.
    parts = [path for path in directory.rglob("part-*") if path.suffix != ".parquet"]
    if kind in REPLACING:
        left.update(_last(parts, COLUMNS[kind]))
    else:
        for path in parts:
            table = csv.read_csv(path, csv.ReadOptions(column_names=COLUMNS[kind]))
            _take(left, table, COLUMNS[kind])
    if negative := [answer for answer, count in left.items() if count < 0]:
        raise ValueError(f"withdrawn, but never there: {negative[:3]}")
    return sorted(left.elements())


def _take(left: Counter[Answer], table: pa.Table, names: list[str]) -> None:
    changes = table.column("change").to_pylist() if "change" in table.column_names else None
    rows = zip(*(_values(table.column(name)) for name in names), strict=True)
    for place, answer in enumerate(rows):
        left[answer] += -1 if changes and changes[place] in WITHDRAWN else 1


def _values(column: pa.ChunkedArray) -> list[int | str]:
    if pa.types.is_timestamp(column.type):
        column = pc.cast(pc.cast(column, pa.timestamp("ms", column.type.tz)), pa.int64())
    return list(column.to_pylist())


def _last(parts: list[Path], names: list[str]) -> Iterable[Answer]:
    """The last row of each id, which is in the files of one task: part-JOB-TASK-NUMBER."""
    last: dict[int, Answer] = {}
    for path in sorted(parts, key=lambda path: int(path.name.rsplit("-", 1)[1])):
        for line in path.read_text().splitlines():
            row = json.loads(line)["after"]
            last[row["id"]] = tuple(_ms(row[n]) if n in TIMES else row[n] for n in names)
    return last.values()


def _ms(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)
