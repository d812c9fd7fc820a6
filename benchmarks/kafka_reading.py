"""Reading and decoding Kafka messages: Headrace and Spark's connector in the JVM. One command, one table in Markdown.

    python benchmarks/kafka_reading.py [--broker HOST:PORT]         without it one is started

Both read all bids of a topic of two partitions, decode every column from JSON and discard the rows, on as many cores, one after the other, each in
a process of its own. Spark decodes with `from_json` in the JVM, and with `pyarrow` in its Python workers (`mapInArrow`), in batches of 500,000 rows;
Headrace checkpoints where it is in every epoch, as always. The clock runs from the end of the first epoch or batch, when everything is up, to the end of the last.
"""

import argparse
import time

from jars import SPARK_KAFKA, fetched
from kafka_bids import Bids
from kafka_contenders import HEADRACE, broker, picked, say, shared_options
from processes import ContenderFailed, cost_us, measure

RUNS = {
    HEADRACE: ("contenders/headrace_kafka.py", "reading"),
    "Spark, from_json": ("contenders/spark_kafka.py", "from_json"),
    "Spark, mapInArrow": ("contenders/spark_kafka.py", "arrow"),
}
HEADER = """\
| | rows | rows/s | Headrace is |
|---|---|---|---|"""


def main() -> None:
    """Run one after the other and print the table."""
    options = _options()
    began = time.monotonic()
    with broker(options):
        costs = _costs(options)
    print(HEADER)
    for name, cost in costs.items():
        ours = costs.get(HEADRACE) if name != HEADRACE else None
        ratio = f"{cost / ours:.2f}x" if ours else ""
        print(f"| {name} | {options.rows:,} | {1e6 / cost:,.0f} | {ratio} |")
    say(f"done in {time.monotonic() - began:.0f} s")


def _costs(options: argparse.Namespace) -> dict[str, float]:
    """Microseconds a row by contender; one that fails says why and is left out."""
    bids = Bids(options.rows, options.keys, options.event_rate)
    bids.load(options.broker)
    costs: dict[str, float] = {}
    for name in picked(options, RUNS):
        script, job = RUNS[name]
        jars = "" if name == HEADRACE else ",".join(map(str, fetched(SPARK_KAFKA)))
        arguments = [job, options.broker, bids.topic, options.rows, options.cores, jars]
        try:
            costs[name] = cost_us(measure(script, arguments, limit_s=options.limit))
        except ContenderFailed as failed:
            say(f"{name} failed: {failed}")
            continue
        say(f"{name}: {costs[name]:.2f} us a row")
    return costs


def _options() -> argparse.Namespace:
    parser = shared_options(__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=5_000)
    parser.add_argument("--event-rate", type=int, default=10_000, help="bids a second of its time")
    return parser.parse_args()


if __name__ == "__main__":
    main()
