"""What the queries of joins.py must answer, computed row by row in plain Python.

Slow, and independent of both contenders: it is how `joins.py --check` knows that the two compute the same, and the
right thing. An answer is a tuple of the columns in `COLUMNS`; times are milliseconds since 1970. Of the winning bid of
q9 the bidder is left out: two bids of one price and millisecond are equally right.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

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
    STATES_OF_Q3,
    URL,
)

__all__ = ["COLUMNS", "Answer", "answers"]

FIRST_MS = 1_767_225_600_000
WINDOW_MS, MINUTE_MS = 10_000, 60_000

_AUCTION = "item_name description initial_bid reserve date_time expires seller category extra"
#: The columns of an answer.
COLUMNS = {
    "window": "id amount price window_start window_end".split(),
    "interval": "id amount price ts ts_right".split(),
    "versioned": "id amount price ts".split(),
    "q3": "name city state id".split(),
    "q8": "id name window_start".split(),
    "q9": f"id {_AUCTION} price bid_date_time".split(),
    "q20": f"auction bidder price channel url bid_date_time bid_extra {_AUCTION}".split(),
}

Answer = tuple[int | str, ...]
#: A row of a side: key, place among the rows of the side, milliseconds.
Row = tuple[int, int, int]
Event = dict[str, int | str]


def answers(kind: str, rows: int, keys: int, event_rate: int) -> list[Answer]:
    """All results of a kind of join, sorted."""
    if kind in TWO_SIDES:
        left, right = _sides(kind, rows, keys, event_rate)
        by_key: dict[int, list[Row]] = defaultdict(list)
        for row in right:
            by_key[row[0]].append(row)
        return sorted(a for row in left for a in TWO_SIDES[kind](row, by_key[row[0]]))
    persons, auctions, bids = _auction_house(rows, event_rate)
    found = AUCTION_HOUSE[kind](persons, auctions, bids)
    return sorted(tuple(event[name] for name in COLUMNS[kind]) for event in found)


def _sides(kind: str, rows: int, keys: int, event_rate: int) -> tuple[list[Row], list[Row]]:
    left, right = [], []
    for number in range(rows):
        place = number // 2
        time_ms = FIRST_MS + number * 1000 // event_rate
        if number % 2 == 0:
            key = place if kind == "interval" else (place * 7919 + 13) % keys
            left.append((key, place, time_ms))
        elif kind == "interval":
            # In each block of payments every order of that block is paid once.
            right.append((place // keys * keys + (place * 7919 + 13) % keys, place, time_ms))
        else:
            right.append(((place * 7907 + 29) % keys, place, time_ms))
    return left, right


def _window(row: Row, others: list[Row]) -> Iterator[Answer]:
    start = row[2] // WINDOW_MS * WINDOW_MS
    for _, price, time_ms in others:
        if start <= time_ms < start + WINDOW_MS:
            yield row[0], row[1], price, start, start + WINDOW_MS


def _interval(row: Row, others: list[Row]) -> Iterator[Answer]:
    for _, price, time_ms in others:
        if row[2] - MINUTE_MS <= time_ms <= row[2] + MINUTE_MS:
            yield row[0], row[1], price, row[2], time_ms


def _versioned(row: Row, others: list[Row]) -> Iterator[Answer]:
    valid = [(time_ms, price) for _, price, time_ms in others if time_ms <= row[2]]
    if valid:
        yield row[0], row[1], max(valid)[1], row[2]


TWO_SIDES: dict[str, Callable[[Row, list[Row]], Iterator[Answer]]] = {
    "window": _window,
    "interval": _interval,
    "versioned": _versioned,
}


def _auction_house(rows: int, event_rate: int) -> tuple[list[Event], list[Event], list[Event]]:
    persons, auctions, bids = [], [], []
    for number in range(rows):
        time_ms = FIRST_MS + number * 1000 // event_rate
        match number % 50:
            case 0:
                persons.append(_person(number, time_ms))
            case 1 | 2 | 3:
                auctions.append(_auction(number, time_ms, event_rate))
            case _:
                bids.append(_bid(number, time_ms))
    return persons, auctions, bids


def _draw(use: str, number: int) -> int:
    return (number * DRAWS[use] + 13) % MODULUS


def _one_of(words: list[str], use: str, number: int) -> str:
    return words[_draw(use, number) % len(words)]


def _text(number: int, length: Callable[[int], int]) -> str:
    piece = _draw("text", number) % 100
    return LETTERS[piece : piece + length(piece)]


def _price(number: int, mantissa: str, scale: str) -> int:
    power = int(10 ** (2 + _draw(scale, number) % 6))
    return power * (10_000 + _draw(mantissa, number) % 90_000) // 10_000


def _someone(number: int, use: str, favourite: int) -> int:
    people = number // 50 + 1
    if _draw("hot", number) % 4 > 0:
        return (people - 1) // 100 * 100 + favourite
    active = min(people, 1000)
    return people - active + _draw(use, number) % (active + 10) + 1000


def _person(number: int, time_ms: int) -> Event:
    first, last = (
        _one_of(FIRST_NAMES, "first name", number),
        _one_of(LAST_NAMES, "last name", number),
    )
    return {
        "id": number // 50 + 1000,
        "name": f"{first} {last}",
        "city": _one_of(CITIES, "city", number),
        "state": _one_of(STATES, "state", number),
        "window_start": time_ms // WINDOW_MS * WINDOW_MS,
    }


def _auction(number: int, time_ms: int, event_rate: int) -> Event:
    initial = _price(number, "length", "price")
    longest = max(2 * EVENTS_PER_HORIZON * 1000 // event_rate, 1)
    return {
        "id": number // 50 * 3 + number % 50 - 1 + 1000,
        "item_name": _text(number, lambda piece: 5 + piece % 16),
        "description": _text(number, lambda piece: 10 + piece * 9 // 10),
        "initial_bid": initial,
        "reserve": initial + _price(number, "price", "scale"),
        "date_time": time_ms,
        "expires": time_ms + 1 + _draw("length", number) % longest,
        "seller": _someone(number, "seller", 1000),
        "category": 10 + _draw("category", number) % 5,
        "extra": _text(number, lambda piece: 304 + piece * 3 // 2),
    }


def _bid(number: int, time_ms: int) -> Event:
    latest = number // 50 * 3 + 2
    oldest = max(latest - 100, 0)
    auction = oldest + _draw("auction", number) % (latest - oldest + 11)
    if _draw("hot", number) % 2 == 0:
        auction = latest // 100 * 100
    return {
        "auction": auction + 1000,
        "bidder": _someone(number, "bidder", 1001),
        "price": _price(number, "price", "scale"),
        "channel": _one_of(CHANNELS, "length", number),
        "url": URL[: 40 + _draw("length", number) % 37],
        "bid_date_time": time_ms,
        "bid_extra": _text(number, lambda piece: 54 + piece % 28),
    }


def _q3(persons: list[Event], auctions: list[Event], _bids: list[Event]) -> Iterator[Event]:
    sellers = {p["id"]: p for p in persons if p["state"] in STATES_OF_Q3}
    for auction in auctions:
        if auction["category"] == 10 and auction["seller"] in sellers:
            yield sellers[auction["seller"]] | {"id": auction["id"]}


def _q8(persons: list[Event], auctions: list[Event], _bids: list[Event]) -> Iterator[Event]:
    sold = {(a["seller"], int(a["date_time"]) // WINDOW_MS * WINDOW_MS) for a in auctions}
    return (person for person in persons if (person["id"], person["window_start"]) in sold)


def _q9(_persons: list[Event], auctions: list[Event], bids: list[Event]) -> Iterator[Event]:
    by_auction: dict[int | str, list[Event]] = defaultdict(list)
    for bid in bids:
        by_auction[bid["auction"]].append(bid)
    for auction in auctions:
        begin, end = int(auction["date_time"]), int(auction["expires"])
        offers = [b for b in by_auction[auction["id"]] if begin <= int(b["bid_date_time"]) <= end]
        if offers:
            yield auction | min(offers, key=lambda b: (-int(b["price"]), int(b["bid_date_time"])))


def _q20(_persons: list[Event], auctions: list[Event], bids: list[Event]) -> Iterator[Event]:
    wanted = {auction["id"]: auction for auction in auctions if auction["category"] == 10}
    return (bid | wanted[bid["auction"]] for bid in bids if bid["auction"] in wanted)


_Query = Callable[[list[Event], list[Event], list[Event]], Iterator[Event]]
AUCTION_HOUSE: dict[str, _Query] = {"q3": _q3, "q8": _q8, "q9": _q9, "q20": _q20}
