"""The shop of the examples: what is paid, what is not, what comes too late, and for whom it counts."""

import os
import subprocess
import sys
from bisect import bisect_right
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from examples import orders_and_payments as example
from headrace.connectors.memory import MemorySink
from headrace.testing import run_local

ROOT = Path(__file__).parents[2]
ORDERS = 2_000


def reference(shop: example.Shop) -> dict[str, Any]:
    """The same in a few loops over all that happened."""
    paid_at = {payment.order: payment.at for payment in shop.payments}
    stuck = {n for n in range(ORDERS // 2) if n % 50 == 9}
    tiers = {customer.customer: customer.tier for customer in shop.customers}
    rates: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for rate in shop.rates:
        rates[rate.currency].append((rate.at, rate.worth))
    revenue: dict[str, tuple[int, int]] = {}
    unpaid = set()
    for order in shop.orders:
        at = paid_at.get(order.id)
        if at is None or at - order.at > example.HOUR or order.id in stuck:
            unpaid.add(order.id)
            continue
        known = rates[order.currency]
        worth = known[bisect_right([since for since, _ in known], order.at) - 1][1]
        orders, value = revenue.get(tiers[order.customer], (0, 0))
        revenue[tiers[order.customer]] = (orders + 1, value + order.amount * worth)
    too_late = unpaid & paid_at.keys() - stuck
    return {"revenue": revenue, "unpaid": unpaid, "too_late": too_late, "stuck": stuck}


@pytest.mark.parametrize(
    "options",
    [{"shards": 1}, {"shards": 3, "crashes": [(1, "staged"), (4, "durable")]}],
    ids=["one shard", "three shards and crashes"],
)
def test_every_order_and_payment_ends_where_it_belongs(options: dict[str, Any]) -> None:
    shop = example.make(ORDERS)
    env = hr.Environment("orders", epochs=hr.Epochs(rows=250))
    flow = example.build(env, shop)
    sinks = {name: MemorySink() for name in ("revenue", "unpaid", "too_late", "stuck")}
    for name, sink in sinks.items():
        getattr(flow, name).sink_to(sink, uid=f"{name}-out")
    run_local(env, **options)
    expected = reference(shop)
    revenue = {r["tier"]: (r["orders"], r["value"]) for r in sinks["revenue"].to_pylist()}
    assert revenue == expected["revenue"]
    for name, column in (("unpaid", "id"), ("too_late", "order"), ("stuck", "order")):
        found = [row[column] for row in sinks[name].to_pylist()]
        assert sorted(found) == sorted(expected[name]), name


@pytest.mark.parametrize(
    "arguments", [["--local"], pytest.param([], marks=pytest.mark.spark)], ids=["local", "spark"]
)
def test_the_program_prints_what_became_of_the_orders(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "examples/orders_and_payments.py", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == example.TIERS
    assert lines[-1] == (
        "1,680 orders paid within the hour, 320 not; 100 payments came behind it, 20 were heard of too late"
    )
