"""From Kafka to Kafka: Headrace and Flink 2.3 exactly once, Spark's own sink at least once. One command, one table in Markdown.

    python benchmarks/kafka.py                                everything; the last line says how long it took
    python benchmarks/kafka.py --only headrace flink          some contenders
    python benchmarks/kafka.py --broker HOST:PORT             on a broker that is running; without it one is started

The job: bids as JSON from a topic of two partitions, without those of a low price, counted per auction in windows of 10 s, as JSON to a topic of
three partitions. Flink is SQL with its Kafka connector, state on the heap, a checkpoint and a transaction every second. Spark is `groupBy(window)` with
`from_json`, RocksDB and batches of 250,000 rows. Headrace checkpoints and publishes in every epoch, which follows the backlog (about a second).

All bids lie in the topic before a contender starts, and a contender never ends by itself. An observer that belongs to none of them, a consumer
that sees committed messages only, measures all of them in the same way. Its clock begins when the first results
are visible and ends when the last are; what is counted is bids in results that became visible in between, so neither the start nor what was done before the first commit counts.
Results are compared with the right ones. Times in messages are ISO 8601; with `--times millis` they are numbers, which Flink reads much faster than texts.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from kafka_bids import Bids
from kafka_contenders import FLINK, HEADRACE, SPARK, broker, picked, running, say, shared_options
from kafka_topics import Observer, Seen, delete_topics, make_topic
from processes import AtWork, ContenderFailed

RESULT_PARTITIONS = 3
#: Results that are visible so soon after the very first belong to the same commit.
COMMIT_S = 0.25
#: How long to look for results that should not be.
AFTERWARDS_S = 2.0
HEADER = """\
| | bids | seconds to the first result | rows/s | Headrace is | us of a core a row | results |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Measured:
    """What the observer saw of a contender."""

    start_s: float
    rows: float
    seconds: float
    cpu_s: float
    verdict: str

    @property
    def speed(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds

    @property
    def cpu_us(self) -> float:
        """Microseconds of a core a row, without the broker's."""
        return self.cpu_s * 1e6 / self.rows


def main() -> None:
    """Run one after the other and print the table."""
    options = _options()
    began = time.monotonic()
    with broker(options):
        bids = Bids(options.rows, options.keys, options.event_rate, options.times == "millis")
        found = _found(bids, options)
    print(HEADER)
    for name, measured in found.items():
        print(_line(name, measured, found.get(HEADRACE), options.rows))
    say(f"done in {time.monotonic() - began:.0f} s")
    sys.exit(any(measured.verdict != "right" for measured in found.values()))


def _options() -> argparse.Namespace:
    parser = shared_options(__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=5_000)
    parser.add_argument("--event-rate", type=int, default=10_000, help="bids a second of its time")
    parser.add_argument("--times", choices=["iso", "millis"], default="iso", help="in messages")
    return parser.parse_args()


def _found(bids: Bids, options: argparse.Namespace) -> dict[str, Measured]:
    """What was measured, by contender; one that fails says why and is left out."""
    bids.load(options.broker)
    right = bids.results()
    found: dict[str, Measured] = {}
    for name in picked(options, [HEADRACE, FLINK, SPARK]):
        try:
            found[name] = _run(name, bids, right, options)
        except ContenderFailed as failed:
            say(f"{name} failed: {failed}")
            continue
        say(f"{name}: {found[name].speed:,.0f} rows/s, {found[name].verdict}")
    return found


def _run(
    name: str, bids: Bids, right: list[tuple[int, int, int]], options: argparse.Namespace
) -> Measured:
    results = f"benchmark-results-{time.time_ns()}"
    job = "count-millis" if bids.numbers else "count"
    make_topic(options.broker, results, RESULT_PARTITIONS)
    observer = Observer(options.broker, results, RESULT_PARTITIONS)
    started = time.time()
    try:
        with running(name, job, bids.topic, results, options) as contender:
            seen, cpu_s = _watched(observer, len(right), started + options.limit, contender)
    finally:
        observer.close()
        delete_topics(options.broker, [results])
    return _measured(seen, cpu_s, started, right, bids.rows)


def _watched(
    observer: Observer, wanted: int, limit: float, contender: AtWork
) -> tuple[list[Seen], float]:
    """All results in the order in which they became visible, and time of a core between first and last."""
    seen: list[Seen] = []
    count, until, cpu_s = 0, limit, 0.0
    while (now := time.time()) < until:
        look = observer.look()
        if look.values:
            seen.append(look)
            if not count:
                cpu_s -= contender.cpu_s()
        if count < wanted <= count + len(look.values):
            until = now + AFTERWARDS_S
            cpu_s += contender.cpu_s()
        count += len(look.values)
        contender.check()
    if count < wanted:
        raise ContenderFailed(f"told {count:,} of {wanted:,} results in its time")
    return seen, cpu_s


def _measured(
    seen: list[Seen],
    cpu_s: float,
    started: float,
    right: list[tuple[int, int, int]],
    rows: int,
) -> Measured:
    looks = [(look.at, [_result(value) for value in look.values]) for look in seen]
    first = looks[0][0]
    kept = sum(count for *_, count in right)
    later = sum(sum(r[2] for r in told) for at, told in looks if at > first + COMMIT_S) or 1
    told = sorted(result for _, results in looks for result in results)
    seconds = looks[-1][0] - first
    return Measured(first - started, later * rows / kept, seconds, cpu_s, _verdict(told, right))


def _result(value: bytes) -> tuple[int, int, int]:
    result = json.loads(value)
    start = datetime.fromisoformat(result["window_start"])
    start = start if start.tzinfo else start.replace(tzinfo=UTC)
    return result["auction"], round(start.timestamp() * 1000), result["bids"]


def _verdict(told: list[tuple[int, int, int]], right: list[tuple[int, int, int]]) -> str:
    if told == right:
        return "right"
    missing, extra = sorted(set(right) - set(told))[:2], sorted(set(told) - set(right))[:2]
    twice = len(told) - len(set(told))
    return f"WRONG: {len(told):,} of {len(right):,}, {twice:,} twice, missing {missing} ..., too much {extra} ..."


def _line(name: str, measured: Measured, ours: Measured | None, rows: int) -> str:
    ratio = f"{ours.speed / measured.speed:.2f}x" if ours and name != HEADRACE else ""
    cells = [name, f"{rows:,}", f"{measured.start_s:.1f}", f"{measured.speed:,.0f}", ratio]
    return f"| {' | '.join([*cells, f'{measured.cpu_us:.1f}', measured.verdict])} |"


if __name__ == "__main__":
    main()
