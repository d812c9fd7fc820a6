"""The columns of persons, auctions and bids, each a function of the event numbers.

A column is made only if it is asked for. The distributions are Nexmark's, with its hot auctions,
bidders and sellers, and ids up to 10 ahead of what exists yet. One difference: a bidder is a person's
id, where the original adds the first id twice.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from headrace.connectors.generator import texts
from headrace.connectors.generator.draws import Draws, Int64s
from headrace.connectors.generator.timeline import AUCTIONS, BIDS, PERSONS, Kind, Timeline

__all__ = ["SCHEMAS", "World", "columns_of"]

_FIRST_ID = 1000
_LEAD = 10
_AUCTIONS_IN_FLIGHT = 100
_ACTIVE_PEOPLE = 1000
_HOT_GROUP = 100
_FIRST_CATEGORY, _CATEGORIES = 10, 5
_EVENTS_PER_HORIZON = _AUCTIONS_IN_FLIGHT * 50 // 3
_TIME = pa.timestamp("us", tz="UTC")
_SIX_DECADES = 6 * math.log(10.0)


@dataclass(frozen=True, slots=True)
class World:
    """What the values of all events follow from."""

    draws: Draws
    timeline: Timeline

    def times_us(self, events: Int64s) -> Int64s:
        """The event times of these events."""
        return self.timeline.times_us(self.draws, events)


Column: TypeAlias = Callable[[World, Int64s], pa.Array]


def columns_of(kind: Kind) -> Mapping[str, Column]:
    """How each column of a kind is made."""
    return _COLUMNS[kind.name]


def _person_id(_world: World, events: Int64s) -> pa.Array:
    return pa.array(events // 50 + _FIRST_ID)


def _auction_id(_world: World, events: Int64s) -> pa.Array:
    return pa.array(events // 50 * 3 + events % 50 - 1 + _FIRST_ID)


def _date_time(world: World, events: Int64s) -> pa.Array:
    return pa.array(world.times_us(events)).cast(_TIME)


def _email(world: World, events: Int64s) -> pa.Array:
    mailbox = texts.picked(texts.mailboxes, world.draws, 20, events)
    domain = texts.picked(texts.domains, world.draws, 21, events)
    return texts.joined([mailbox, domain], "@")


def _credit_card(world: World, events: Int64s) -> pa.Array:
    groups = [texts.picked(texts.card_groups, world.draws, 22 + n, events) for n in range(4)]
    return texts.joined(groups, " ")


def _word(table: texts.WordTable, stream: int) -> Column:
    def column(world: World, events: Int64s) -> pa.Array:
        return texts.picked(table, world.draws, stream, events)

    return column


def _filler(average: int, stream: int) -> Column:
    def column(world: World, events: Int64s) -> pa.Array:
        return texts.picked(texts.fillers(average), world.draws, stream, events)

    return column


def _prices(world: World, events: Int64s, stream: int) -> Int64s:
    """Log-uniform from 100 to 100,000,000."""
    powers = np.exp(world.draws.fractions(stream, events) * _SIX_DECADES)
    cents: Int64s = np.rint(powers * 100).astype(np.int64)
    return cents


def _initial_bid(world: World, events: Int64s) -> pa.Array:
    return pa.array(_prices(world, events, 30))


def _reserve(world: World, events: Int64s) -> pa.Array:
    return pa.array(_prices(world, events, 30) + _prices(world, events, 31))


def _expires(world: World, events: Int64s) -> pa.Array:
    longest = max(2 * world.timeline.duration_ms(_EVENTS_PER_HORIZON), 1)
    lengths_ms = 1 + world.draws.below(32, events, longest)
    return pa.array(world.times_us(events) + lengths_ms * 1000).cast(_TIME)


def _seller(world: World, events: Int64s) -> pa.Array:
    hot = world.draws.chance(33, events, 0.75)
    favourite = events // 50 // _HOT_GROUP * _HOT_GROUP
    return pa.array(np.where(hot, favourite, _someone(world, events, 34)) + _FIRST_ID)


def _category(world: World, events: Int64s) -> pa.Array:
    return pa.array(world.draws.below(35, events, _CATEGORIES) + _FIRST_CATEGORY)


def _bid_auction(world: World, events: Int64s) -> pa.Array:
    latest = events // 50 * 3 + 2
    oldest = np.maximum(latest - _AUCTIONS_IN_FLIGHT, 0)
    cold = oldest + world.draws.below(40, events, latest - oldest + 1 + _LEAD)
    hot = world.draws.chance(41, events, 0.5)
    return pa.array(np.where(hot, latest // _HOT_GROUP * _HOT_GROUP, cold) + _FIRST_ID)


def _bidder(world: World, events: Int64s) -> pa.Array:
    hot = world.draws.chance(42, events, 0.75)
    favourite = events // 50 // _HOT_GROUP * _HOT_GROUP + 1
    return pa.array(np.where(hot, favourite, _someone(world, events, 43)) + _FIRST_ID)


def _someone(world: World, events: Int64s, stream: int) -> Int64s:
    """One of the people who came last, or one who is about to come."""
    people = events // 50 + 1
    active = np.minimum(people, _ACTIVE_PEOPLE)
    return people - active + world.draws.below(stream, events, active + _LEAD)


def _price(world: World, events: Int64s) -> pa.Array:
    return pa.array(_prices(world, events, 44))


def _channels(world: World, events: Int64s) -> pa.Array:
    """Places in the tables of channels and addresses."""
    hot = world.draws.chance(45, events, 0.5)
    hot_count = len(texts.HOT_CHANNELS)
    warm = world.draws.below(46, events, hot_count)
    cold = hot_count + world.draws.below(47, events, len(texts.channels()) - hot_count)
    return pa.array(np.where(hot, warm, cold))


def _channel(world: World, events: Int64s) -> pa.Array:
    return texts.channels().take(_channels(world, events))


def _url(world: World, events: Int64s) -> pa.Array:
    return texts.urls().take(_channels(world, events))


_COLUMNS: dict[str, dict[str, Column]] = {
    PERSONS.name: {
        "id": _person_id,
        "name": _word(texts.names, 10),
        "email_address": _email,
        "credit_card": _credit_card,
        "city": _word(texts.cities, 11),
        "state": _word(texts.states, 12),
        "date_time": _date_time,
        "extra": _filler(130, 13),
    },
    AUCTIONS.name: {
        "id": _auction_id,
        "item_name": _word(texts.item_names, 14),
        "description": _word(texts.descriptions, 15),
        "initial_bid": _initial_bid,
        "reserve": _reserve,
        "date_time": _date_time,
        "expires": _expires,
        "seller": _seller,
        "category": _category,
        "extra": _filler(380, 16),
    },
    BIDS.name: {
        "auction": _bid_auction,
        "bidder": _bidder,
        "price": _price,
        "channel": _channel,
        "url": _url,
        "date_time": _date_time,
        "extra": _filler(68, 17),
    },
}

_TEXT = {"name", "email_address", "credit_card", "city", "state", "extra", "item_name"}
_TEXT |= {"description", "channel", "url"}


def _type(name: str) -> pa.DataType:
    if name in _TEXT:
        return pa.string()
    return _TIME if name in ("date_time", "expires") else pa.int64()


#: The full schema of each kind, by its name.
SCHEMAS: Mapping[str, pa.Schema] = {
    kind: pa.schema([pa.field(name, _type(name)) for name in columns])
    for kind, columns in _COLUMNS.items()
}
