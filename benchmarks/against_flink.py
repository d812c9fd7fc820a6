"""Headrace, Flink and Spark's own aggregation, side by side on this machine: one command, one table.

    python benchmarks/against_flink.py

Each contender counts and sums per key in a 10 s event-time window, on as many cores, one after the other.
Flink 2.3 runs in a virtual environment that this script makes beside the repository's own. Rows a second
depend on the machine; the ratios in the last column are what to compare. A contender that is slow gets fewer rows
(`--rows` gives all of them the same).
"""

import argparse
import os
import sys
from dataclasses import dataclass

from processes import ContenderFailed, flink_python, measure
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Contender:
    """A system under test: its script, the last argument of it, and rows by number of keys."""

    name: str
    script: str
    option: str
    few_keys_rows: int
    many_keys_rows: int
    flink: bool = False


CONTENDERS = [
    Contender("Headrace", "headrace_window.py", "files", 20_000_000, 20_000_000),
    Contender(
        "Flink SQL, heap state", "flink_sql.py", "hashmap", 10_000_000, 10_000_000, flink=True
    ),
    Contender("Flink SQL, RocksDB", "flink_sql.py", "rocksdb", 3_000_000, 2_000_000, flink=True),
    Contender("Spark groupBy(window)", "spark_native.py", "", 10_000_000, 5_000_000),
]


def main() -> None:
    """Run every contender at every number of keys and print the table."""
    options = _options()
    flink = options.flink_python or flink_python()
    console = Console()
    for keys in options.keys:
        measured: dict[str, tuple[int, float]] = {}
        for contender in CONTENDERS:
            if options.only and not any(o.lower() in contender.name.lower() for o in options.only):
                continue
            console.print(f"[dim]{contender.name}, {keys:,} keys ...")
            measured[contender.name] = _run(contender, keys, flink, options)
        console.print(_table(keys, measured, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--keys", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rows", type=int, help="the same number of rows for everyone")
    parser.add_argument(
        "--event-rate", type=int, default=1_000_000, help="rows per second of event time"
    )
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", help="parts of the contenders' names")
    parser.add_argument("--discard", action="store_true", help="Headrace forgets its results too")
    parser.add_argument("--flink-python", help="the interpreter of an environment that has Flink")
    return parser.parse_args()


def _run(
    contender: Contender, keys: int, flink: str, options: argparse.Namespace
) -> tuple[int, float]:
    rows = options.rows or (
        contender.few_keys_rows if keys <= 100_000 else contender.many_keys_rows
    )
    option = "discard" if options.discard and contender.option == "files" else contender.option
    arguments = (rows, keys, options.event_rate, options.cores, option)
    python = flink if contender.flink else sys.executable
    try:
        result = measure(f"contenders/{contender.script}", arguments, python=python)
    except ContenderFailed as failed:
        sys.exit(f"{contender.name} failed: {failed}")
    return int(result["rows"]), float(result["seconds"])


def _table(keys: int, measured: dict[str, tuple[int, float]], options: argparse.Namespace) -> Table:
    table = Table(
        title=f"{keys:,} keys, {options.cores} cores, {options.event_rate:,} events/s of event time"
    )
    for title in ("", "rows", "seconds", "rows/s", "Headrace is"):
        table.add_column(title, justify="right" if title else "left")
    speeds = {name: rows / seconds for name, (rows, seconds) in measured.items()}
    for name, (rows, seconds) in measured.items():
        ratio = f"{speeds['Headrace'] / speeds[name]:.1f}x" if "Headrace" in speeds else ""
        table.add_row(name, f"{rows:,}", f"{seconds:.1f}", f"{speeds[name]:,.0f}", ratio)
    return table


if __name__ == "__main__":
    main()
