"""Persons, auctions and bids for joins.py, made from their numbers in NumPy.

All are rows of one table, told apart by `event_type`, with nulls in the columns that a kind does not have. Only columns
that the query at hand looks at are made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from auction_house import (
    CHANNELS,
    CITIES,
    DRAWS,
    EVENTS_PER_HORIZON,
    FIRST_NAMES,
    LAST_NAMES,
    LETTERS,
    MODULUS,
    STATES,
    URL,
)
from contenders.headrace_join_rows import FIRST_MS, TIME, Int64s, Maker, times

__all__ = ["AUCTION", "BID", "PERSON", "events", "schema_of"]

#: The values of `event_type`.
PERSON, AUCTION, BID = 0, 1, 2
_KIND = np.array([PERSON, *[AUCTION] * 3, *[BID] * 46], dtype=np.int8)


@dataclass(frozen=True)
class Events:
    """Some events of one kind."""

    number: Int64s
    event_rate: int

    def draw(self, use: str, limit: int | Int64s) -> Int64s:
        """A number below the limit for each."""
        drawn: Int64s = (self.number * DRAWS[use] + 13) % MODULUS % limit
        return drawn


def events(names: Sequence[str], event_rate: int) -> Maker:
    """Events with these columns behind `event_type` and `date_time`."""
    schema = schema_of(names)

    def rows(start: int, end: int) -> pa.RecordBatch:
        number = np.arange(start, end, dtype=np.int64)
        kinds = _KIND[number % 50]
        columns = [_column(name, number, kinds, event_rate) for name in names]
        return pa.record_batch([kinds, times(number, event_rate), *columns], schema)

    return rows


def schema_of(names: Sequence[str]) -> pa.Schema:
    """The columns of a table of events."""
    own = [
        (name, pa.string() if name in _TEXTS else _TYPES.get(name, pa.int64())) for name in names
    ]
    return pa.schema([("event_type", pa.int8()), ("date_time", TIME), *own])


def _column(name: str, number: Int64s, kinds: npt.NDArray[np.int8], event_rate: int) -> pa.Array:
    values, missing = np.zeros(len(number), np.int64), np.ones(len(number), np.bool_)
    for kind, columns in _COLUMNS.items():
        if name in columns:
            mine = np.flatnonzero(kinds == kind)
            values[mine] = columns[name](Events(number[mine], event_rate))
            missing[mine] = False
    made = pa.array(values, mask=missing)
    return _TEXTS[name].take(made) if name in _TEXTS else made.cast(_TYPES.get(name, pa.int64()))


def _price(mantissa: str, scale: str) -> Callable[[Events], Int64s]:
    powers = 10 ** np.arange(2, 8, dtype=np.int64)
    return lambda e: powers[e.draw(scale, 6)] * (10_000 + e.draw(mantissa, 90_000)) // 10_000


def _someone(use: str, favourite: int) -> Callable[[Events], Int64s]:
    def someone(some: Events) -> Int64s:
        people = some.number // 50 + 1
        active = np.minimum(people, 1000)
        cold = people - active + some.draw(use, active + 10) + 1000
        return np.where(some.draw("hot", 4) > 0, (people - 1) // 100 * 100 + favourite, cold)

    return someone


def _bid_auction(bids: Events) -> Int64s:
    latest = bids.number // 50 * 3 + 2
    oldest = np.maximum(latest - 100, 0)
    cold = oldest + bids.draw("auction", latest - oldest + 11)
    return np.where(bids.draw("hot", 2) == 0, latest // 100 * 100, cold) + 1000


def _expires_us(auctions: Events) -> Int64s:
    longest = max(2 * EVENTS_PER_HORIZON * 1000 // auctions.event_rate, 1)
    begin = FIRST_MS + auctions.number * 1000 // auctions.event_rate
    return (begin + 1 + auctions.draw("length", longest)) * 1000


def _pieces(length: Callable[[int], int]) -> list[str]:
    return [LETTERS[piece : piece + length(piece)] for piece in range(100)]


_initial_bid, _bid_price = _price("length", "price"), _price("price", "scale")

#: How the columns of each kind are made; those of texts are places in `_TEXTS`.
_COLUMNS: dict[int, dict[str, Callable[[Events], Int64s]]] = {
    PERSON: {
        "id": lambda e: e.number // 50 + 1000,
        "name": lambda e: (
            e.draw("first name", len(FIRST_NAMES)) * len(LAST_NAMES)
            + e.draw("last name", len(LAST_NAMES))
        ),
        "city": lambda e: e.draw("city", len(CITIES)),
        "state": lambda e: e.draw("state", len(STATES)),
    },
    AUCTION: {
        "id": lambda e: e.number // 50 * 3 + e.number % 50 + 999,
        "item_name": lambda e: e.draw("text", 100),
        "description": lambda e: e.draw("text", 100),
        "initial_bid": _initial_bid,
        "reserve": lambda e: _initial_bid(e) + _bid_price(e),
        "expires": _expires_us,
        "seller": _someone("seller", 1000),
        "category": lambda e: e.draw("category", 5) + 10,
        "extra": lambda e: e.draw("text", 100),
    },
    BID: {
        "auction": _bid_auction,
        "bidder": _someone("bidder", 1001),
        "price": _bid_price,
        "channel": lambda e: e.draw("length", len(CHANNELS)),
        "url": lambda e: e.draw("length", 37),
        "extra": lambda e: e.draw("text", 100) + 100,
    },
}
_TYPES = {"expires": TIME}
_TEXTS = {
    "name": pa.array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]),
    "city": pa.array(CITIES),
    "state": pa.array(STATES),
    "item_name": pa.array(_pieces(lambda piece: 5 + piece % 16)),
    "description": pa.array(_pieces(lambda piece: 10 + piece * 9 // 10)),
    "channel": pa.array(CHANNELS),
    "url": pa.array([URL[: 40 + length] for length in range(37)]),
    "extra": pa.array(
        _pieces(lambda piece: 304 + piece * 3 // 2) + _pieces(lambda piece: 54 + piece % 28)
    ),
}
