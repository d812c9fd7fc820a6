"""What one heavy key costs: half of all rows on it, against keys that are all alike. The bar is 1.2x.

    python benchmarks/skew.py

Count and sum per key in tumbling windows of 10 s and in sessions with a gap of 3 s; 100,000 keys. When a key is heavy,
every second row is its own and the others are spread over the same keys as before, so that live keys and results stay
the same, or within a tenth for sessions: windows have ten or five rows of each key, sessions (see windows.py for how keys
come and go) about nine or five. The session of the heavy key lasts as long as the job. Runs alternate, each in a process of its own, and the median
of a few is compared. Unless rows were folded before the shuffle, the shard of the heavy key would do three times
the work of the other.
"""

import argparse
import os
import statistics
import sys

from processes import ContenderFailed, cost_us, measure

SCRIPT = "contenders/headrace_windows.py"
HEADER = """\
| window | keys | rows | uniform, us a row | half on one key, us a row | ratio |
|---|---|---|---|---|---|"""


def main() -> None:
    """A line of Markdown for each kind of window."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=["tumbling", "session"])
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=180, help="seconds that a run may take")
    parser.add_argument("--files", action="store_true", help="write Parquet, do not discard")
    options = parser.parse_args()
    print(HEADER, flush=True)
    for kind in options.only:
        try:
            print(_line(kind, options), flush=True)
        except ContenderFailed as failed:
            print(f"{kind} failed: {failed}", file=sys.stderr, flush=True)


def _line(kind: str, options: argparse.Namespace) -> str:
    costs: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(options.repeat):
        for hot, found in costs.items():
            found.append(_cost_us(kind, options, hot=hot))
            name = "half on one key" if hot else "uniform"
            print(f"{kind}, {name}: {found[-1]:.3f} us a row", file=sys.stderr, flush=True)
    uniform, heavy = (statistics.median(costs[hot]) for hot in (False, True))
    cells = [kind, f"{options.keys:,}", f"{options.rows:,}", f"{uniform:.3f}", f"{heavy:.3f}"]
    return f"| {' | '.join(cells)} | {heavy / uniform:.2f}x |"


def _cost_us(kind: str, options: argparse.Namespace, *, hot: bool) -> float:
    # A row a second and key: with half of them on one key the others still come within the gap.
    numbers = [options.rows, options.keys, options.keys, options.cores]
    arguments = [kind, *numbers, "files" if options.files else "discard", *["hot"] * hot]
    return cost_us(measure(SCRIPT, arguments, limit_s=options.limit))


if __name__ == "__main__":
    main()
