"""What the contenders of process.py must have told: for each timer one result, and every amount once.

Spark's source never ends, so its results go on behind those that are asked for; what counts are timers up to the last one of
the rows.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

__all__ = ["right_answer", "verdict"]

FIRST_MS = 1_767_225_600_000
AHEAD_MS = 3_000


def right_answer(rows: int, event_rate: float) -> tuple[int, int, int]:
    """(results, sum of all amounts, time of the last timer in ms)."""
    last_ms = FIRST_MS + int((rows - 1) * 1000 // event_rate) + AHEAD_MS
    return rows, rows // 100 * 4950 + sum(range(rows % 100)), last_ms


def verdict(directory: Path, right: tuple[int, int, int]) -> str:
    """Whether the results in a directory are these."""
    table = _read(directory)
    expected, amounts, last_ms = right
    wanted = table.filter(pc.less_equal(table["at_ms"], last_ms))
    if wanted.num_rows != expected:
        return f"WRONG: {wanted.num_rows:,} results up to the last timer, not {expected:,}"
    if wanted.num_rows == table.num_rows and pc.sum(table["total"]).as_py() != amounts:
        return f"WRONG: the amounts are {pc.sum(table['total']).as_py():,}, not {amounts:,}"
    return "right"


def _read(directory: Path) -> pa.Table:
    """The columns account, at_ms and total of Parquet files, or of CSV files as Flink names them."""
    found = [p for p in directory.rglob("*") if p.is_file() and not p.name.startswith(("_", "."))]
    if any(p.suffix == ".parquet" for p in found):
        table = pa.concat_tables(pa.parquet.read_table(p) for p in found if p.suffix == ".parquet")
    else:
        names = pa.csv.ReadOptions(column_names=["account", "at_ms", "total"])
        table = pa.concat_tables(
            pa.csv.read_csv(p, read_options=names) for p in found if p.stat().st_size
        )
    if "at" in table.column_names:
        at_ms = pc.divide(table["at"].cast(pa.int64()), 1_000)
        table = table.append_column("at_ms", at_ms)
    return table
