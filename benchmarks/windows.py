"""Headrace and Flink 2.3 side by side in every kind of window: one command, one table in Markdown.

    python benchmarks/windows.py                          everything; the last line says how long it took
    python benchmarks/windows.py --only hopping session   some kinds; `headrace`, `flink`, `growth` pick runs
    python benchmarks/windows.py --check                  are the answers right? nothing is measured

Both count and sum per key, on as many cores, one after the other, each in a process of its own and on the same rows.
Flink is SQL (HOP, SESSION, CUMULATE, OVER) with state on the heap and a checkpoint every second; for count windows, which SQL
lacks, it is the Table API's `Tumble` over 5 rows. Flink discards its results. Headrace checkpoints in
every epoch and writes Parquet exactly once, or discards too with `--discard`.

    hopping      10 s by 2 s           look-back    the row and all of its key up to 10 s before it
    cumulating   10 s by 2 s           count        every 5 rows of a key
    session      3 s

A key has a row every 2 s of event time, however many keys there are: results per row are the same for 100,000 and for
1,000,000 keys (one for each row in hopping, cumulating and look-back windows). The last two columns (`growth`)
compare what a row costs Headrace in mid-stream, in 10 epochs of 400,000 rows when every key is live and as many windows
go as come; a cost that grows would come from keys that merely exist.

For sessions keys come and go. Half of them are at work at any time, with a row about every second and never more than 1.25 s
apart; after 5 s at work a key is silent for 5 to 6 s, longer than the gap, so its session ends and fires while others go on.
That is 4 to 5 rows a session, ends spread evenly over time, and 7 of 10 keys in an open session.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from processes import ContenderFailed, cost_us, flink_python, measure
from window_answers import answers
from window_results import read_results

KINDS = ["hopping", "session", "cumulating", "look-back", "count"]
HEADRACE, FLINK, GROWTH = "Headrace", "Flink", "growth"
#: Rows for both contenders, such that the slower one takes less than a minute.
FEW_KEYS_ROWS = 3_000_000
MANY_KEYS_ROWS = 5_000_000
SECONDS_BETWEEN_ROWS = 2
RUNS = [HEADRACE, FLINK, GROWTH]
HEADER = """\
| window | keys | rows | Headrace rows/s | Flink rows/s | Headrace is | us a row in mid-stream | against {first:,} keys |
|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Check, or measure and print a line of the table as soon as it is known."""
    options = _options()
    flink = ""
    if FLINK in _picked(options, RUNS):
        flink = options.flink_python or flink_python()
    if options.check:
        sys.exit(_check(options, flink))
    began = time.monotonic()
    print(HEADER.format(first=options.keys[0]), flush=True)
    for kind in _picked(options, KINDS):
        first: float | None = None
        for keys in options.keys:
            costs = dict(_costs(kind, keys, options, flink))
            first = costs.get(GROWTH) if keys == options.keys[0] else first
            print(_line(kind, keys, _rows(keys, options), costs, first), flush=True)
    _say(f"done in {time.monotonic() - began:.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--keys", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rows", type=int, help="the same number of rows for all numbers of keys")
    parser.add_argument("--only", nargs="+", default=[], help="kinds of windows, runs, or both")
    parser.add_argument("--growth-rows", type=int, default=400_000, help="rows of their epochs")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=180, help="seconds that a contender may take")
    parser.add_argument("--discard", action="store_true", help="Headrace forgets its results too")
    parser.add_argument("--check", action="store_true", help="compare results, measure nothing")
    parser.add_argument("--flink-python", help="the interpreter of an environment that has Flink")
    return parser.parse_args()


def _picked(options: argparse.Namespace, names: list[str]) -> list[str]:
    words = [word.lower() for word in options.only]
    return [n for n in names if any(w in n.lower() for w in words)] or names


def _rows(keys: int, options: argparse.Namespace) -> int:
    return int(options.rows or (FEW_KEYS_ROWS if keys <= 100_000 else MANY_KEYS_ROWS))


def _costs(
    kind: str, keys: int, options: argparse.Namespace, flink: str
) -> Iterator[tuple[str, float]]:
    """Microseconds a row by run; one that fails says why and is left out."""
    sink = "discard" if options.discard else "files"
    for run in _picked(options, RUNS):
        began = time.monotonic()
        try:
            cost = cost_us(_run(run, kind, _rows(keys, options), keys, sink, options, flink))
        except ContenderFailed as failed:
            _say(f"{kind}, {keys:,} keys: {run} failed: {failed}")
            continue
        took = time.monotonic() - began
        _say(f"{kind}, {keys:,} keys: {run} {cost:.2f} us a row, {took:.0f} s with its start")
        yield run, cost


def _run(
    run: str, kind: str, rows: int, keys: int, sink: str, options: argparse.Namespace, flink: str
) -> dict[str, float]:
    arguments = [kind, rows, keys, keys // SECONDS_BETWEEN_ROWS, options.cores]
    if run == FLINK:
        results = [] if sink in ("files", "discard") else [sink]
        script = "contenders/flink_windows.py"
        return measure(script, arguments + results, python=flink, limit_s=options.limit)
    words = [sink]
    if run == GROWTH:
        arguments[1], words = options.growth_rows, [sink, "steady"]
    return measure("contenders/headrace_windows.py", arguments + words, limit_s=options.limit)


def _line(kind: str, keys: int, rows: int, costs: dict[str, float], first: float | None) -> str:
    ours, theirs, growth = (costs.get(run) for run in RUNS)
    cells = [
        kind,
        f"{keys:,}",
        f"{rows:,}" if ours or theirs else "",
        f"{1e6 / ours:,.0f}" if ours else "",
        f"{1e6 / theirs:,.0f}" if theirs else "",
        f"{theirs / ours:.1f}x" if ours and theirs else "",
        f"{growth:.2f}" if growth else "",
        f"{growth / first:.2f}x" if growth and first else "",
    ]
    return f"| {' | '.join(cells)} |"


def _check(options: argparse.Namespace, flink: str) -> int:
    """How many contenders answered wrongly in some kind of window."""
    keys = 5_000 * options.cores
    wrong = 0
    for kind in _picked(options, KINDS):
        rows = 20 * keys
        right = answers(kind, rows, keys, keys // SECONDS_BETWEEN_ROWS)
        for name in [run for run in _picked(options, RUNS) if run != GROWTH]:
            with TemporaryDirectory() as directory:
                try:
                    _run(name, kind, rows, keys, directory, options, flink)
                    verdict = _verdict(read_results(kind, Path(directory)), right)
                except ContenderFailed as failed:
                    verdict = f"failed: {failed}"
            wrong += verdict != "right"
            print(f"{kind}, {rows:,} rows, {len(right):,} results: {name} is {verdict}", flush=True)
    return wrong


def _verdict(found: list[tuple[int, ...]], right: list[tuple[int, ...]]) -> str:
    if found == right:
        return "right"
    missing, extra = sorted(set(right) - set(found))[:3], sorted(set(found) - set(right))[:3]
    return f"WRONG: {len(found):,} results, missing are {missing} ..., too much are {extra} ..."


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
