"""Words for the string columns of Nexmark.

Strings come from tables that are made once per process and looked up by random number: a look-up costs
about as much as copying the bytes, and making each string anew would cost more than all other columns
together. The tables do not depend on the seed; which entry a row gets does.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.generator.draws import Draws, Int64s

__all__ = [
    "HOT_CHANNELS",
    "WordTable",
    "card_groups",
    "channels",
    "cities",
    "descriptions",
    "domains",
    "fillers",
    "item_names",
    "joined",
    "mailboxes",
    "names",
    "picked",
    "states",
    "urls",
]

WordTable: TypeAlias = Callable[[], pa.Array]

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_COLD_CHANNELS = 10_000
_FIRST_NAMES = (
    *("Peter", "Paul", "Luke", "John", "Saul", "Vicky"),
    *("Kate", "Julie", "Sarah", "Deiter", "Walter"),
)
_LAST_NAMES = (
    *("Shultz", "Abrams", "Spencer", "White", "Bartels"),
    *("Walton", "Smith", "Jones", "Noris"),
)
_CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
    *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
)
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_TABLE_SEED = 20_25
_TABLE_SIZE = 4_096


def picked(table: WordTable, draws: Draws, stream: int, counters: Int64s) -> pa.Array:
    """A uniformly random word of the table for each counter."""
    words = table()
    return words.take(pa.array(draws.below(stream, counters, len(words))))


def joined(parts: Sequence[pa.Array], separator: str) -> pa.Array:
    """The parts of each row put together."""
    return pc.binary_join_element_wise(*parts, separator)


@cache
def names() -> pa.Array:
    """First and last names of persons."""
    return pa.array([f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES])


@cache
def cities() -> pa.Array:
    """Cities of persons."""
    return pa.array(_CITIES)


@cache
def states() -> pa.Array:
    """States of persons; as in Nexmark, unrelated to the city."""
    return pa.array(_STATES)


@cache
def card_groups() -> pa.Array:
    """The four-digit groups of a credit card's number."""
    return pa.array([f"{number:04d}" for number in range(10_000)])


@cache
def mailboxes() -> pa.Array:
    """What stands before the @."""
    return pa.array(_words(1, 7, 7))


@cache
def domains() -> pa.Array:
    """What stands behind the @."""
    return pa.array([f"{word}.com" for word in _words(2, 5, 5)])


@cache
def item_names() -> pa.Array:
    """What is auctioned."""
    return pa.array(_words(3, 3, 20))


@cache
def descriptions() -> pa.Array:
    """What is said about it."""
    return pa.array(_words(4, 3, 100))


@cache
def channels() -> pa.Array:
    """The four hot channels, then 10,000 others."""
    return pa.array([*HOT_CHANNELS, *(f"channel-{n}" for n in range(_COLD_CHANNELS))])


@cache
def urls() -> pa.Array:
    """The address that belongs to each channel; nine cold ones in ten name their channel in it."""
    count = len(HOT_CHANNELS) + _COLD_CHANNELS
    first, second, third = (_words(stream, 3, 5, count) for stream in (5, 6, 7))
    tagged = Draws(_TABLE_SEED).chance(8, np.arange(count), 0.9)
    return pa.array(
        [
            f"https://www.nexmark.com/{first[n]}/{second[n]}/{third[n]}/item.htm?query=1"
            + (
                f"&channel_id={n - len(HOT_CHANNELS)}"
                if n >= len(HOT_CHANNELS) and tagged[n]
                else ""
            )
            for n in range(count)
        ]
    )


@cache
def fillers(average: int) -> WordTable:
    """Letters that fill a row up to its average size, give or take a fifth."""
    table = pa.array(_words(9, average - average // 5, average + average // 5))
    return lambda: table


def _words(stream: int, shortest: int, longest: int, count: int = _TABLE_SIZE) -> list[str]:
    """Random words of lower-case letters."""
    draws = Draws(_TABLE_SEED)
    counters = np.arange(count, dtype=np.int64)
    lengths = draws.below(stream, counters, longest - shortest + 1) + shortest
    letters = draws.below(stream + 100, np.arange(count * longest, dtype=np.int64), 26) + ord("a")
    text = letters.astype(np.uint8).tobytes().decode("ascii")
    return [text[n * longest : n * longest + int(length)] for n, length in enumerate(lengths)]
