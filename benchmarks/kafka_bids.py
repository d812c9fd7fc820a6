"""The stream that the Kafka benchmarks read: bids as JSON of about 130 bytes, loaded once and kept, and what to make of them.

Bids lie on two partitions in order of time. The last message of each partition is an hour later than all others: it closes every window, so that
a job which never ends has told all of its results.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from confluent_kafka import Producer
from kafka_topics import ends, make_topic

__all__ = ["FILTER_PRICE", "WINDOW_S", "Bids", "bid"]

PARTITIONS = 2
#: Bids below are left out; a fifth is.
FILTER_PRICE = 100
PRICES = 500
WINDOW_S = 10
#: 2026-01-01 00:00 UTC.
FIRST_MS = 1_767_225_600_000
CLOSING_MS = 3_600_000
AT_ONCE = 50_000


@dataclass(frozen=True)
class Bids:
    """So many bids on so many auctions, so many a second of event time."""

    rows: int
    keys: int
    event_rate: int
    #: Times are numbers of milliseconds instead of ISO 8601.
    numbers: bool = False

    @property
    def topic(self) -> str:
        """Where they lie; the name says what they are, so that a later run finds them."""
        kind = "numbers" if self.numbers else "texts"
        return f"benchmark-bids-{self.rows}-{self.keys}-{self.event_rate}-{kind}"

    def load(self, broker: str) -> None:
        """Put them there, unless they are."""
        if sum(ends(broker, self.topic).values()) == self.rows + PARTITIONS:
            return
        print(f"loading {self.rows:,} bids into {self.topic} (once)", file=sys.stderr, flush=True)
        make_topic(broker, self.topic, PARTITIONS)
        producer = Producer(
            {
                "bootstrap.servers": broker,
                "linger.ms": 50,
                "queue.buffering.max.messages": 4 * AT_ONCE,
                "enable.idempotence": True,
            }
        )
        for first in range(0, self.rows, AT_ONCE):
            for place, message in enumerate(self._messages(first), first):
                producer.produce(self.topic, message, partition=place % PARTITIONS)
            while len(producer) > 2 * AT_ONCE:
                producer.poll(0.05)
        for partition in range(PARTITIONS):
            closing_ms = self._times_ms(np.array([self.rows])) + CLOSING_MS
            message = bid(0, 0, FILTER_PRICE, self._written(closing_ms)[0])
            producer.flush()
            producer.produce(self.topic, message, partition=partition)
        producer.flush()

    def results(self) -> list[tuple[int, int, int]]:
        """What is right: auction, start of the window in ms, bids; sorted."""
        number = np.arange(self.rows)
        kept = _price(number) >= FILTER_PRICE
        window = self._times_ms(number)[kept] // (WINDOW_S * 1000)
        pairs, counts = np.unique(
            window * self.keys + self._auction(number)[kept], return_counts=True
        )
        starts = pairs // self.keys * (WINDOW_S * 1000)
        columns = ((pairs % self.keys).tolist(), starts.tolist(), counts.tolist())
        return sorted(zip(*columns, strict=True))

    def _messages(self, first: int) -> Iterator[bytes]:
        number = np.arange(first, min(first + AT_ONCE, self.rows))
        columns = self._auction(number).tolist(), number.tolist(), _price(number).tolist()
        return map(bid, *columns, self._written(self._times_ms(number)))

    def _written(self, times_ms: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[str]:
        if self.numbers:
            return [str(time_ms) for time_ms in times_ms.tolist()]
        texts = np.datetime_as_string(times_ms.view("datetime64[ms]"), timezone="UTC")
        return [f'"{text}"' for text in texts.tolist()]

    def _auction(self, number: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> np.ndarray:
        return (number * 7919 + 13) % self.keys

    def _times_ms(self, number: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> np.ndarray:
        return FIRST_MS + number * 1000 // self.event_rate


def bid(auction: int, bidder: int, price: int, at: str, own: str = "") -> bytes:
    """One message; `at` is its time as JSON, `own` what a benchmark wants to have in it besides."""
    return (
        f'{{"auction":{auction},"bidder":{bidder},"price":{price},"channel":"channel-{auction % 40}",'
        f'"url":"https://bids.example/{auction}",{own}"ts":{at}}}'
    ).encode()


def _price(number: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> np.ndarray:
    return (number * 2_654_435_761 >> 7) % PRICES
