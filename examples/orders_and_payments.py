"""Follows orders of a shop to their payments: three joins in one job, none of which needs a server.

    orders --versioned join--> in euros --interval join--> settled --regular join--> revenue by tier
    rates  -----'              payments -----'             customers, last() --'

An order is worth what its currency was worth when it was made. It is paid if a payment comes within an hour; if none has, it
comes out alone when the hour is over, and so does a payment that came later than that. A payment whose message was
stuck for so long that all is decided by then is a late row. Paid orders count for the tier that their customer has now: when
that changes, what was counted before is taken back and counted anew.

    python examples/orders_and_payments.py            2,000 orders on Spark; prints what became of them
    python examples/orders_and_payments.py --local    the same in this process, without Java
"""

import argparse
import random
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace import testing
from headrace.connectors import memory

FIRST = datetime(2025, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
TIERS = ["bronze", "silver", "gold"]
CURRENCIES = ["USD", "GBP", "SEK"]
CUSTOMERS = 40


@dataclass
class Order:
    """An order, in cents of its currency."""

    id: int
    customer: int
    currency: str
    amount: int
    at: datetime


@dataclass
class Rate:
    """What a currency is worth from now on, in hundredths of a euro."""

    currency: str
    worth: int
    at: datetime


@dataclass
class Payment:
    """A payment of an order."""

    order: int
    at: datetime


@dataclass
class Customer:
    """The tier of a customer from now on."""

    customer: int
    tier: str
    at: datetime


@dataclass(frozen=True)
class Flow:
    """The streams that come out."""

    revenue: hr.Stream
    unpaid: hr.Stream
    too_late: hr.Stream
    stuck: hr.Stream


@dataclass
class Shop:
    """All that happens in a shop, in the order in which it is heard of."""

    orders: list[Order] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)
    payments: list[Payment] = field(default_factory=list)
    customers: list[Customer] = field(default_factory=list)


def build(env: hr.Environment, shop: Shop) -> Flow:
    """The job."""
    orders = _source(env, shop.orders, "orders")
    rates = _source(env, shop.rates, "rates")
    payments = _source(env, shop.payments, "payments")
    customers = _source(env, shop.customers, "customers")

    priced = orders.join_versioned(rates, on="currency", at=orders.time, uid="priced")
    in_euros = priced.select("id", "customer", value=hr.col("amount") * hr.col("worth"))
    settled = in_euros.interval_join(payments, left_on="id", right_on="order").between(
        timedelta(0), HOUR, how="full", uid="settled"
    )
    paid = settled.filter(hr.col("id").is_not_null() & hr.col("order").is_not_null())
    tiers = customers.key_by("customer").last(forever=True, uid="tiers")
    # An order counts for the tiers that its customer has on the day behind it; then it is history.
    ranked = paid.join(tiers, on="customer", ttl=[timedelta(days=1), None], uid="ranked")
    revenue = (
        ranked.key_by("tier")
        .window(hr.windows.Global())
        .aggregate(orders=hr.count(), value=hr.sum("value"), uid="revenue")
    )
    return Flow(
        revenue,
        settled.filter(hr.col("order").is_null()),
        settled.filter(hr.col("id").is_null()),
        settled.late_right,
    )


def _source(env: hr.Environment, rows: list[Any], uid: str) -> hr.Stream:
    bound = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(minutes=1))
    return env.from_source(
        memory.MemorySource(rows), watermarks=bound.with_timestamps("at"), uid=uid
    )


def make(orders: int) -> Shop:
    """A shop with an order every ten seconds: some are never paid, some late, and some payments are stuck for two hours."""
    drawn = random.Random(7)
    shop = Shop()
    heard: list[tuple[datetime, Payment]] = []
    for number in range(orders):
        at = FIRST + number * timedelta(seconds=10)
        customer, currency = drawn.randrange(CUSTOMERS), drawn.choice(CURRENCIES)
        shop.orders.append(Order(number, customer, currency, drawn.randrange(500, 20_000), at))
        if number % 10 == 3:
            continue  # never paid
        took = timedelta(
            minutes=drawn.uniform(61, 120) if number % 20 == 7 else drawn.uniform(1, 55)
        )
        stuck = timedelta(hours=2 if number % 50 == 9 and number < orders // 2 else 0)
        heard.append((at + took + stuck, Payment(number, at + took)))
    shop.payments = [payment for _, payment in sorted(heard, key=lambda entry: entry[0])]
    for place in range(0, orders, 60):
        moment = FIRST + place * timedelta(seconds=10)
        shop.rates += [Rate(name, drawn.randrange(80, 120), moment) for name in CURRENCIES]
    for number in range(orders // 2):
        moment = FIRST + number * timedelta(seconds=20)
        shop.customers.append(Customer(number % CUSTOMERS, drawn.choice(TIERS), moment))
    return shop


def main() -> None:
    """Print what became of the orders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--orders", type=int, default=2_000)
    parser.add_argument("--local", action="store_true", help="in this process, without Spark")
    options = parser.parse_args()
    revenue, unpaid, too_late, stuck = (memory.MemorySink() for _ in range(4))
    with tempfile.TemporaryDirectory(prefix="headrace-orders-") as scratch:
        # Whether a row is late depends on where epochs are cut: here they are cut alike in every run.
        epochs = hr.Epochs(rows=max(1, options.orders // 8))
        env = hr.Environment("orders", checkpoint=Path(scratch, "checkpoint"), epochs=epochs)
        flow = build(env, make(options.orders))
        flow.revenue.sink_to(revenue, uid="revenue-out")
        flow.unpaid.sink_to(unpaid, uid="unpaid-out")
        flow.too_late.sink_to(too_late, uid="too-late-out")
        flow.stuck.sink_to(stuck, uid="stuck-out")
        if options.local:
            testing.run_local(env)
        else:
            env.execute()
    rows = sorted(revenue.to_pylist(), key=lambda row: TIERS.index(row["tier"]))
    for row in rows:
        print(f"{row['tier']:8} {row['orders']:6,} orders  {row['value'] / 10_000:12,.2f} EUR")
    print(f"{sum(row['orders'] for row in rows):,} orders paid within the hour, ", end="")
    print(f"{len(unpaid)} not; {len(too_late)} payments came behind it, ", end="")
    print(f"{len(stuck)} were heard of too late")


if __name__ == "__main__":
    main()
