"""Nexmark's queries with joins, each against the same query in plain Python over all rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace import triggers, windows
from headrace.connectors.generator import Nexmark
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local

EVENTS = Nexmark(events=None, event_rate=100)
TEN = windows.Tumbling(timedelta(seconds=10))
OPEN = (hr.col("bid_time") >= hr.col("opened")) & (hr.col("bid_time") <= hr.col("expires"))
Rows = list[dict[str, Any]]


def rows_of(source: Any, rows: int) -> Rows:
    return [row for batch in source.read("0", 0, rows, None) for row in batch.batch.to_pylist()]


# Of every 50 events one is a person, 3 are auctions and 46 bids.
PERSONS = rows_of(EVENTS.persons(), 60)
AUCTIONS = rows_of(EVENTS.auctions(), 180)
BIDS = rows_of(EVENTS.bids(), 2_760)


class House:
    """The streams of the auction house in an environment, with the columns that queries look at."""

    def __init__(self) -> None:
        self.env, self.out = hr.Environment("nexmark"), MemorySink()
        self.persons = self._stream(PERSONS, "persons")
        self.auctions = self._stream(AUCTIONS, "auctions")
        self.bids = self._stream(BIDS, "bids")

    def _stream(self, rows: Rows, uid: str) -> hr.Stream:
        strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=4))
        return self.env.from_source(
            MemorySource(rows), watermarks=strategy.with_timestamps("date_time"), uid=uid
        )

    def pairs(self) -> hr.Stream:
        """Auctions with their bids that came in time."""
        auctions = self.auctions.select("id", "category", "expires", opened=hr.col("date_time"))
        bids = self.bids.select("auction", "price", "bidder", bid_time=hr.col("date_time"))
        return auctions.key_by("id").first(uid="once").join(
            bids, left_on="id", right_on="auction", where=OPEN, uid="pairs"
        )  # fmt: skip

    def winning(self, *keys: str) -> hr.Stream:
        """The winning bid of each auction."""
        return self.pairs().key_by(*keys).top(
            ["price", "bid_time"], descending=[True, False], uid="winning"
        )  # fmt: skip


def net(sink: MemorySink) -> Counter[Any]:
    left: Counter[Any] = Counter()
    for row in sink.to_pylist():
        change = row.pop("change", "+I")
        left[tuple(sorted(row.items()))] += 1 if change[0] == "+" else -1
    assert min(left.values()) >= 0
    return +left


def counted(rows: Rows) -> Counter[Any]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def bids_in_time() -> dict[int, Rows]:
    found = defaultdict(list)
    opened = {auction["id"]: auction for auction in AUCTIONS}
    for bid in BIDS:
        auction = opened.get(bid["auction"])
        if auction and auction["date_time"] <= bid["date_time"] <= auction["expires"]:
            found[bid["auction"]].append(bid)
    return found


def best(bids: Rows) -> dict[str, Any]:
    return min(bids, key=lambda bid: (-bid["price"], bid["date_time"]))


def window_of(at: datetime) -> datetime:
    return at.replace(second=at.second // 10 * 10, microsecond=0)


def q3(house: House) -> hr.Stream:
    sellers = house.persons.filter(hr.col("state").is_in(["OR", "ID", "CA"])).select(
        "id", "name", "city", "state"
    )
    auctions = house.auctions.filter(hr.col("category") == 10).select(
        "seller", auction=hr.col("id")
    )
    once = sellers.key_by("id").first(uid="once")
    return auctions.join(once, left_on="seller", right_on="id", uid="q3").select(
        "name", "city", "state", "auction"
    )


def q3_answer() -> Rows:
    return [
        {"name": p["name"], "city": p["city"], "state": p["state"], "auction": a["id"]}
        for a in AUCTIONS
        for p in PERSONS
        if a["category"] == 10 and a["seller"] == p["id"] and p["state"] in ("OR", "ID", "CA")
    ]


def q7(house: House) -> hr.Stream:
    highest = house.bids.window_all(TEN).aggregate(price=hr.max("price"), uid="highest")
    won = house.bids.window_join(highest, TEN, on="price", how="semi", uid="q7")
    return won.select("auction", "bidder", "price", "date_time")


def q7_answer() -> Rows:
    highest: dict[datetime, int] = defaultdict(int)
    for bid in BIDS:
        at = window_of(bid["date_time"])
        highest[at] = max(highest[at], bid["price"])
    names = ("auction", "bidder", "price", "date_time")
    return [
        {name: bid[name] for name in names}
        for bid in BIDS
        if bid["price"] == highest[window_of(bid["date_time"])]
    ]


def q8(house: House) -> hr.Stream:
    return house.persons.window_join(
        house.auctions, TEN, left_on="id", right_on="seller", how="semi", uid="q8"
    ).select("id", "name", "window_start")


def q8_answer() -> Rows:
    sold = {(auction["seller"], window_of(auction["date_time"])) for auction in AUCTIONS}
    return [
        {"id": p["id"], "name": p["name"], "window_start": window_of(p["date_time"])}
        for p in PERSONS
        if (p["id"], window_of(p["date_time"])) in sold
    ]


def q9(house: House) -> hr.Stream:
    return house.winning("id").select("id", "bidder", "price", "bid_time", "change")


def q9_answer() -> Rows:
    return [
        {"id": n, "bidder": bid["bidder"], "price": bid["price"], "bid_time": bid["date_time"]}
        for n, bid in ((n, best(bids)) for n, bids in bids_in_time().items())
    ]


def q20(house: House) -> hr.Stream:
    auctions = house.auctions.filter(hr.col("category") == 10).select("id", "seller", "category")
    bids = house.bids.select("auction", "bidder", "price")
    once = auctions.key_by("id").first(uid="once")
    return bids.join(once, left_on="auction", right_on="id", uid="q20")


def q20_answer() -> Rows:
    names = ("auction", "bidder", "price")
    return [
        {name: bid[name] for name in names} | {n: auction[n] for n in ("id", "seller", "category")}
        for bid in BIDS
        for auction in AUCTIONS
        if bid["auction"] == auction["id"] and auction["category"] == 10
    ]


@pytest.mark.parametrize(
    ("query", "answer"),
    [(q3, q3_answer), (q7, q7_answer), (q8, q8_answer), (q9, q9_answer), (q20, q20_answer)],
)
def test_a_query_says_what_it_says_of_all_rows(
    query: Callable[[House], hr.Stream], answer: Callable[[], Rows]
) -> None:
    house = House()
    query(house).sink_to(house.out, uid="out")
    run_local(house.env, 2, epochs=hr.Epochs(rows=500), rescale={4: 3})
    wanted = counted(answer())
    assert wanted
    assert net(house.out) == wanted


def test_q4_averages_what_auctions_were_sold_for() -> None:
    house = House()
    (
        house.winning("id", "category")
        .key_by("category")
        .window(windows.Global())
        .trigger(triggers.count(1))
        .aggregate(average=hr.avg("price"), uid="q4")
        .sink_to(house.out, uid="out")
    )
    run_local(house.env, 2, epochs=hr.Epochs(rows=500))
    last = {row["category"]: row["average"] for row in house.out.to_pylist()}
    prices = defaultdict(list)
    category = {auction["id"]: auction["category"] for auction in AUCTIONS}
    for number, bids in bids_in_time().items():
        prices[category[number]].append(best(bids)["price"])
    assert last == pytest.approx({c: sum(found) / len(found) for c, found in prices.items()})
