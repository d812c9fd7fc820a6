"""Keyed process functions: Headrace, PyFlink 2.3 and PySpark's `transformWithState`, one table in Markdown.

    python benchmarks/process.py                      a value and a timer for each row, all three, 100,000 and 1,000,000 keys
    python benchmarks/process.py --only vectorised    Headrace's functions on columns, beside the same row by row
    python benchmarks/process.py --only map           a map of 10 entries for each key: one get and one put a row
    python benchmarks/process.py --only growth        what a row costs in mid-stream at 100,000 and at 1,000,000 keys
    python benchmarks/process.py --check              are the answers right? nothing is measured

The stream: row `i` belongs to key `(7919 i + 13) mod keys`, has the amount `i mod 100`, and rows come in the order of event time. Each
row adds its amount to the value of its key and sets a timer 3 s ahead; the timer tells the value and clears it. So there are as
many results as rows, and all amounts are told once; how they are grouped depends on when a system lets time move on, which is
why only numbers and sums are compared. A key has a row every 2 s of event time, however many keys there are: all of
them are live all the time. The peers are 40 to 200 times slower and get fewer rows over the same span of event
time (--peer-rows; the table says how many), which spares them state and timers at 1,000,000 keys.

Everyone runs on as many cores, one after the other, each in a process of its own. PyFlink: thread mode, heap state, a
checkpoint every 2 s, results discarded. PySpark: the Row flavour, RocksDB with changelog checkpoints, eight batches, results discarded. Headrace
checkpoints every epoch and writes Parquet exactly once, or discards too with `--discard`.

`growth` compares epochs of one size (--growth-rows) when every key is live and as many timers fire as are set.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from process_answers import right_answer, verdict
from processes import ContenderFailed, cost_us, flink_python, measure

HEADRACE, FLINK, SPARK = "Headrace", "PyFlink", "PySpark"
SCRIPTS = {
    HEADRACE: "contenders/headrace_process.py",
    FLINK: "contenders/flink_process.py",
    SPARK: "contenders/spark_process.py",
}
ROWS = {100_000: 3_000_000, 1_000_000: 5_000_000}
#: Such that the slowest takes less than a minute.
PEER_ROWS = {FLINK: 200_000, SPARK: 80_000}
SECONDS_BETWEEN_ROWS = 2
KINDS = ["rows", "vectorised", "map"]


def main() -> None:
    """Check, or measure and print a line of a table as soon as it is known."""
    options = _options()
    if options.check:
        sys.exit(_check(options))
    began = time.monotonic()
    words = [word.lower() for word in options.only]
    for kind in [k for k in KINDS if k in words]:
        _alone(kind, options)
    if "growth" in words:
        _growth(options)
    names = [n for n in SCRIPTS if n.lower() in words]
    if names or not words:
        _compared(names or list(SCRIPTS), options)
    _say(f"done in {time.monotonic() - began:.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--keys", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rows", type=int, help="Headrace's rows at every number of keys")
    parser.add_argument("--peer-rows", type=int, help="rows of both others")
    parser.add_argument("--only", nargs="+", default=[], help="parts, systems, or both")
    parser.add_argument("--growth-rows", type=int, default=200_000, help="rows of their epochs")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=300, help="seconds that a contender may take")
    parser.add_argument("--discard", action="store_true", help="Headrace forgets its results too")
    parser.add_argument("--check", action="store_true", help="compare results, measure nothing")
    parser.add_argument("--flink-python", help="the interpreter of an environment that has Flink")
    return parser.parse_args()


def _compared(names: Sequence[str], options: argparse.Namespace) -> None:
    """All systems, the same function."""
    print("| keys | | rows | rows/s | Headrace is |\n|---|---|---|---|---|", flush=True)
    for keys in options.keys:
        ours: float | None = None
        for name in names:
            rows = _rows(name, keys, options)
            cost = _cost(name, "rows", rows, keys, options)
            if cost is None:
                continue
            ours = cost if name == HEADRACE else ours
            ratio = f"{cost / ours:.0f}x" if ours and name != HEADRACE else ""
            print(f"| {keys:,} | {name} | {rows:,} | {1e6 / cost:,.0f} | {ratio} |", flush=True)


def _alone(kind: str, options: argparse.Namespace) -> None:
    """Another kind of function of Headrace's."""
    print("| function | keys | rows | rows/s |\n|---|---|---|---|", flush=True)
    for keys in options.keys:
        rows = _rows(HEADRACE, keys, options)
        cost = _cost(HEADRACE, kind, rows, keys, options)
        if cost is not None:
            print(f"| {kind} | {keys:,} | {rows:,} | {1e6 / cost:,.0f} |", flush=True)


def _growth(options: argparse.Namespace) -> None:
    """Epochs of one size, in mid-stream."""
    kinds = [k for k in KINDS if k in options.only] or ["rows"]
    print("| function | keys | us a row | against the first |\n|---|---|---|---|", flush=True)
    for kind in kinds:
        first: float | None = None
        for keys in options.keys:
            cost = _cost(HEADRACE, kind, options.growth_rows, keys, options, "steady")
            if cost is None:
                continue
            ratio = f"{cost / first:.2f}x" if first else ""
            first = first or cost
            print(f"| {kind} | {keys:,} | {cost:.2f} | {ratio} |", flush=True)


def _rows(name: str, keys: int, options: argparse.Namespace) -> int:
    ours = int(options.rows or ROWS.get(keys, 30 * keys))
    return ours if name == HEADRACE else int(options.peer_rows or PEER_ROWS[name])


def _cost(
    name: str, kind: str, rows: int, keys: int, options: argparse.Namespace, *words: str
) -> float | None:
    """Microseconds a row; None, with the reason said, if it failed."""
    began = time.monotonic()
    sink = "discard" if options.discard else "files"
    try:
        cost = cost_us(_run(name, kind, rows, keys, sink, options, *words))
    except ContenderFailed as failed:
        _say(f"{kind}, {keys:,} keys: {name} failed: {failed}")
        return None
    took = time.monotonic() - began
    _say(f"{kind}, {keys:,} keys: {name} {cost:.2f} us a row, {took:.0f} s with its start")
    return cost


def _run(
    name: str,
    kind: str,
    rows: int,
    keys: int,
    sink: str,
    options: argparse.Namespace,
    *words: str,
) -> dict[str, float]:
    # The same span of event time for everyone, so that timers fire on the way.
    share = 1.0 if words else rows / _rows(HEADRACE, keys, options)
    event_rate = max(1, round(keys / SECONDS_BETWEEN_ROWS * share))
    numbers = [rows, keys, event_rate, options.cores]
    if name == HEADRACE:
        arguments = [kind, *numbers, sink, *words]
        return measure(SCRIPTS[name], arguments, limit_s=options.limit)
    results = [] if sink in ("files", "discard") else [sink]
    python = sys.executable if name == SPARK else options.flink_python or flink_python()
    return measure(SCRIPTS[name], [*numbers, *results], python=python, limit_s=options.limit)


def _check(options: argparse.Namespace) -> int:
    """How many contenders answered wrongly."""
    keys, rows = 500, 3_000
    options.rows = options.peer_rows = rows
    wrong = 0
    words = [word.lower() for word in options.only]
    parts = [(HEADRACE, "rows"), (HEADRACE, "vectorised"), (FLINK, "rows"), (SPARK, "rows")]
    for name, kind in parts:
        if words and name.lower() not in words and kind not in words:
            continue
        with TemporaryDirectory() as directory:
            try:
                _run(name, kind, rows, keys, directory, options)
                said = verdict(Path(directory), right_answer(rows, keys / SECONDS_BETWEEN_ROWS))
            except ContenderFailed as failed:
                said = f"failed: {failed}"
        wrong += said != "right"
        print(f"{name}, {kind}, {rows:,} rows: {said}", flush=True)
    return wrong


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
