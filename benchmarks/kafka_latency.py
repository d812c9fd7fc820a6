"""How long a message takes from Kafka to Kafka at 1,000 a second: Headrace, Flink 2.3 and Spark. One command, one table in Markdown.

    python benchmarks/kafka_latency.py [--broker HOST:PORT]         without it one is started

Bids are sent at a steady rate to a topic of two partitions. The job leaves out those of a low price, picks columns and writes to a topic of three
partitions: no window, whose waiting would hide the rest. Headrace and Flink write exactly once, Flink with a checkpoint (so a
commit) every second, Headrace with one in every epoch, one behind the other; Spark writes at least once, batch behind batch. Each message says when it was handed to the producer; an observer
that belongs to none of the contenders, a consumer that sees committed messages only, takes the difference. Sending begins when the
contender has told its first result, and the first `--warm` seconds are not counted.
"""

import argparse
import json
import threading
import time
from dataclasses import dataclass

import numpy as np
from confluent_kafka import Producer
from kafka_bids import FILTER_PRICE, bid
from kafka_contenders import FLINK, HEADRACE, SPARK, broker, picked, running, say, shared_options
from kafka_topics import Observer, delete_topics, make_topic
from processes import AtWork, ContenderFailed

PARTITIONS, RESULT_PARTITIONS = 2, 3
#: How long to wait for the last messages, beyond the time of sending.
AFTERWARDS_S = 15
#: A fifth of the bids does not pass.
PRICES = [FILTER_PRICE - 1, *[FILTER_PRICE] * 4]
HEADER = """\
| | messages | p50 ms | p90 ms | p99 ms | longest ms | lost or twice |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Sent:
    """When messages were sent, in microseconds, those that should arrive."""

    times_us: list[int]
    counted_from_us: int


def main() -> None:
    """Run one after the other and print the table."""
    options = _options()
    began = time.monotonic()
    lines = []
    with broker(options):
        for name in picked(options, [HEADRACE, FLINK, SPARK]):
            try:
                lines.append(_line(name, *_run(name, options)))
                say(lines[-1])
            except ContenderFailed as failed:
                say(f"{name} failed: {failed}")
    print("\n".join([HEADER, *lines]))
    say(f"done in {time.monotonic() - began:.0f} s")


def _options() -> argparse.Namespace:
    parser = shared_options(__doc__)
    parser.add_argument("--rate", type=int, default=1_000, help="messages a second")
    parser.add_argument("--seconds", type=int, default=60, help="how long to measure")
    parser.add_argument("--warm", type=int, default=15, help="seconds that are not counted")
    return parser.parse_args()


def _run(name: str, options: argparse.Namespace) -> tuple[Sent, dict[int, list[float]]]:
    """What was sent, and when each message was seen, in seconds by its time of sending."""
    topic, results = (f"benchmark-{what}-{time.time_ns()}" for what in ("pulse", "echo"))
    make_topic(options.broker, topic, PARTITIONS)
    make_topic(options.broker, results, RESULT_PARTITIONS)
    observer = Observer(options.broker, results, RESULT_PARTITIONS)
    try:
        with running(name, "copy", topic, results, options) as contender:
            return _measure(observer, topic, options, contender)
    finally:
        observer.close()
        delete_topics(options.broker, [topic, results])


def _measure(
    observer: Observer, topic: str, options: argparse.Namespace, contender: AtWork
) -> tuple[Sent, dict[int, list[float]]]:
    _wait_for_the_first(observer, topic, options, contender)
    sent: list[int] = []
    counted_from_us = (time.time_ns() // 1000) + options.warm * 1_000_000
    sender = threading.Thread(target=_send, args=(topic, options, sent), daemon=True)
    sender.start()
    seen: dict[int, list[float]] = {}
    until = time.time() + options.warm + options.seconds + AFTERWARDS_S
    while time.time() < until and (sender.is_alive() or len(seen) < len(sent)):
        look = observer.look()
        for value in look.values:
            seen.setdefault(json.loads(value)["sent"], []).append(look.at)
        contender.check()
    sender.join()
    return Sent(sent, counted_from_us), seen


def _wait_for_the_first(
    observer: Observer, topic: str, options: argparse.Namespace, contender: AtWork
) -> None:
    """Until the contender is up: one message in each partition, and all of them are back."""
    producer = Producer({"bootstrap.servers": options.broker})
    for partition in range(PARTITIONS):
        producer.produce(topic, _message(partition, FILTER_PRICE, 0), partition=partition)
    producer.flush()
    missing, until = PARTITIONS, time.time() + options.limit
    while missing > 0:
        missing -= len(observer.look().values)
        contender.check()
        if time.time() > until:
            raise ContenderFailed(f"told nothing in {options.limit} s")


def _send(topic: str, options: argparse.Namespace, sent: list[int]) -> None:
    """At a steady pace; `sent` grows by those that pass the filter."""
    producer = Producer({"bootstrap.servers": options.broker, "linger.ms": 0})
    began = time.time()
    for number in range(options.rate * (options.warm + options.seconds)):
        ahead = began + number / options.rate - time.time()
        if ahead > 0.002:
            time.sleep(ahead)
        price = PRICES[number % len(PRICES)]
        now_us = time.time_ns() // 1000
        # Several may share a microsecond on a clock that is coarse; the time is also the message's name.
        now_us = max(now_us, sent[-1] + 1) if sent else now_us
        producer.produce(topic, _message(number, price, now_us), partition=number % PARTITIONS)
        if price >= FILTER_PRICE:
            sent.append(now_us)
        producer.poll(0)
    producer.flush()


def _message(number: int, price: int, sent_us: int) -> bytes:
    at = np.datetime64(sent_us or time.time_ns() // 1000, "us").astype("datetime64[ms]")
    return bid(number % 1_000, number, price, f'"{at}Z"', f'"sent":{sent_us},')


def _line(name: str, sent: Sent, seen: dict[int, list[float]]) -> str:
    counted = [t for t in sent.times_us if t >= sent.counted_from_us]
    took_ms = [seen[t][0] * 1000 - t / 1000 for t in counted if t in seen]
    if not took_ms:
        raise ContenderFailed("none of the messages that count came back")
    lost = sum(t not in seen for t in sent.times_us)
    twice = sum(len(times) - 1 for times in seen.values())
    p50, p90, p99 = np.percentile(took_ms, [50, 90, 99])
    cells = [name, f"{len(counted):,}", *(f"{p:,.0f}" for p in (p50, p90, p99, max(took_ms)))]
    return f"| {' | '.join([*cells, f'{lost:,} / {twice:,}'])} |"


if __name__ == "__main__":
    main()
