"""Headrace and Flink 2.3 side by side in every kind of join: one command, one table in Markdown.

    python benchmarks/joins.py                       everything; the last line says how long it took
    python benchmarks/joins.py --only interval q20   some kinds; `headrace`, `flink`, `growth` pick runs
    python benchmarks/joins.py --check               are the answers right? nothing is measured

Both join the same rows on as many cores, one after the other, each in a process of its own. Flink is SQL with state on the
heap and a checkpoint every second, and discards its results. Headrace checkpoints in every epoch and writes Parquet exactly
once, or discards too with `--discard`. All rows come from one source and are split by what they are; watermarks are a second behind.

    window       tumbling windows of 10 s, 2 rows a key, window and side: a result for each row that comes
    interval     an order and its payment, up to a minute before or behind; one each
    versioned    orders with the last of the versions of 10,000 keys, which change as often as orders come
    q3, q20      Nexmark's regular joins: auctions with their sellers, all bids with auctions of a category
    q8           Nexmark's persons who opened an auction in the same 10 s
    q9           Nexmark's winning bid of each auction: a regular join, then the best row

Each side of the first three has 100,000 rows in its state (the first of `--states`), which follows from the rows in a second
of event time. Nexmark's rows have its proportions and hot keys and come at 100,000 events a second of event time; the
SQL is Nexmark's own. There Headrace is told with `first()` that ids of auctions and persons are unique.

The last three columns (`growth`) compare what a row costs Headrace in mid-stream, in epochs of 200,000 rows, when each side
has that many rows in its state. `regular` keeps all orders and payments, and a payment is for any of the orders so far;
`latest` keeps the last order and the last payment of as many keys, and new ones change results; their epochs have
100,000 rows. A cost that grows would come from rows that merely lie there.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from join_answers import Answer, answers
from join_results import read_results
from processes import ContenderFailed, cost_us, flink_python, measure

HEADRACE, FLINK, GROWTH = "Headrace", "Flink", "growth"
RUNS = [HEADRACE, FLINK, GROWTH]
#: Rows for both contenders, such that the slower one takes less than a minute; none: only growth is measured.
ROWS = {
    "window": 3_000_000,
    "interval": 2_000_000,
    "versioned": 3_000_000,
    "q3": 10_000_000,
    "q8": 10_000_000,
    "q9": 4_000_000,
    "q20": 4_000_000,
    "regular": 0,
    "latest": 0,
}
#: Rows of an epoch where growth is measured.
GROWING = {"window": 200_000, "interval": 200_000, "versioned": 200_000}
GROWING |= {"regular": 100_000, "latest": 100_000}
NEXMARK_RATE = 100_000
CHECK_ROWS, CHECK_STATE, CHECK_NEXMARK_RATE = 100_000, 10_000, 4_000
HEADER = """\
| join | rows | Headrace rows/s | Flink rows/s | Headrace is | {states} | growth |
|---|---|---|---|---|{dashes}---|"""


def main() -> None:
    """Check, or measure and print a line of the table as soon as it is known."""
    options = _options()
    flink = ""
    if FLINK in _picked(options, RUNS):
        flink = options.flink_python or flink_python()
    if options.check:
        sys.exit(_check(options, flink))
    began = time.monotonic()
    states = " | ".join(f"us a row with {rows:,} a side" for rows in options.states)
    print(HEADER.format(states=states, dashes="---|" * len(options.states)), flush=True)
    for kind in _picked(options, list(ROWS)):
        print(_line(kind, options, flink), flush=True)
    _say(f"done in {time.monotonic() - began:.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, help="the same number of rows for all kinds")
    parser.add_argument("--only", nargs="+", default=[], help="kinds of joins, runs, or both")
    parser.add_argument("--states", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=180, help="seconds that a contender may take")
    parser.add_argument("--discard", action="store_true", help="Headrace forgets its results too")
    parser.add_argument("--check", action="store_true", help="compare results, measure nothing")
    parser.add_argument("--flink-python", help="the interpreter of an environment that has Flink")
    return parser.parse_args()


def _picked(options: argparse.Namespace, names: list[str]) -> list[str]:
    words = [word.lower() for word in options.only]
    return [name for name in names if name.lower() in words] or names


def _line(kind: str, options: argparse.Namespace, flink: str) -> str:
    costs: dict[str, float | None] = dict.fromkeys(RUNS)
    rows = options.rows or ROWS[kind]
    runs = _picked(options, RUNS)
    if ROWS[kind]:
        for run in [run for run in runs if run != GROWTH]:
            arguments = [rows, *_keys_and_rate(kind, options.states[0])]
            costs[run] = _cost(run, kind, arguments, options, flink)
    growth: list[float | None] = [None] * len(options.states)
    if GROWTH in runs and kind in GROWING:
        growth = [_growth(kind, state, options) for state in options.states]
    ours, theirs = costs[HEADRACE], costs[FLINK]
    cells = [
        kind,
        f"{rows:,}" if ours or theirs else "",
        f"{1e6 / ours:,.0f}" if ours else "",
        f"{1e6 / theirs:,.0f}" if theirs else "",
        f"{theirs / ours:.1f}x" if ours and theirs else "",
        *(f"{cost:.2f}" if cost else "" for cost in growth),
        f"{growth[-1] / growth[0]:.2f}x" if growth[0] and growth[-1] else "",
    ]
    return f"| {' | '.join(cells)} |"


def _keys_and_rate(kind: str, state: int) -> tuple[int, int]:
    """Such that each side has `state` rows: the number of keys, or of orders paid in one block; events in a second."""
    match kind:
        case "window":
            return state // 2, state // 5
        case "interval":
            return state // 2, state // 30
        case "versioned":
            return 10_000, 2 * state
        case "regular" | "latest":
            return state, 100_000
        case _:
            return 0, NEXMARK_RATE


def _growth(kind: str, state: int, options: argparse.Namespace) -> float | None:
    arguments = [GROWING[kind], *_keys_and_rate(kind, state)]
    return _cost(GROWTH, kind, arguments, options, "", state)


def _cost(
    run: str,
    kind: str,
    arguments: list[int],
    options: argparse.Namespace,
    flink: str,
    state: int | None = None,
) -> float | None:
    """Microseconds a row; a run that fails says why."""
    began = time.monotonic()
    sink = "discard" if options.discard else "files"
    told = f"{kind}, {run}" + (f" with {state:,} rows a side" if state else "")
    try:
        cost = cost_us(_run(run, kind, arguments, sink, options, flink, state))
    except ContenderFailed as failed:
        _say(f"{told}: failed: {failed}")
        return None
    _say(f"{told}: {cost:.2f} us a row, {time.monotonic() - began:.0f} s with its start")
    return cost


def _run(
    run: str,
    kind: str,
    arguments: list[int],
    sink: str,
    options: argparse.Namespace,
    flink: str,
    state: int | None = None,
) -> dict[str, float]:
    words: list[object] = [kind, *arguments, options.cores]
    if run == FLINK:
        words += [] if sink in ("files", "discard") else [sink]
        return measure("contenders/flink_joins.py", words, python=flink, limit_s=options.limit)
    words += [sink, *(["steady", state] if state else [])]
    return measure("contenders/headrace_joins.py", words, limit_s=options.limit)


def _check(options: argparse.Namespace, flink: str) -> int:
    """How many contenders answered wrongly in some kind of join."""
    wrong = 0
    rows = options.rows or CHECK_ROWS
    for kind in [kind for kind in _picked(options, list(ROWS)) if ROWS[kind]]:
        keys, rate = _keys_and_rate(kind, CHECK_STATE)
        rate = rate if keys else CHECK_NEXMARK_RATE
        right = answers(kind, rows, keys, rate)
        for name in [run for run in _picked(options, RUNS) if run != GROWTH]:
            with TemporaryDirectory() as directory:
                try:
                    _run(name, kind, [rows, keys, rate], directory, options, flink)
                    verdict = _verdict(read_results(kind, Path(directory)), right)
                except (ContenderFailed, ValueError) as failed:
                    verdict = f"failed: {failed}"
            wrong += verdict != "right"
            print(f"{kind}, {rows:,} rows, {len(right):,} results: {name} is {verdict}", flush=True)
    return wrong


def _verdict(found: list[Answer], right: list[Answer]) -> str:
    if found == right:
        return "right"
    missing, extra = sorted(set(right) - set(found))[:3], sorted(set(found) - set(right))[:3]
    return f"WRONG: {len(found):,} results, missing are {missing} ..., too much are {extra} ..."


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
