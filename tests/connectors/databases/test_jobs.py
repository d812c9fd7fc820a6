"""Whole jobs that write to a database, in this process: killed at every point, and with commits whose answer is lost."""

import itertools
from typing import Any

import pytest

import headrace as hr
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySource
from headrace.testing import run_local
from headrace.testing.database import Database

ORDER = {"country": str, "price": int}
ORDERS = [("FR", 3), ("NO", 5), ("FR", 4), ("NO", 1), ("FR", 2), ("DK", 9)]
CHANGE = {"country": str, "price": int, "change": str}
CHANGES = [
    ("FR", 3, "+I"),
    ("NO", 5, "+I"),
    ("FR", 3, "-U"),
    ("FR", 7, "+U"),
    ("NO", 5, "-D"),
    ("DK", 9, "+I"),
]


def job(database: Database) -> hr.Environment:
    """Adds all orders to one table and keeps the last price of each country in another, two rows an epoch."""
    env = hr.Environment("orders", epochs=hr.Epochs(rows=2))
    orders = [dict(zip(ORDER, order, strict=True)) for order in ORDERS]
    added = env.from_source(MemorySource(orders, ORDER), uid="orders")
    added.sink_to(database.sink("orders", create=True), uid="all")
    changes = [dict(zip(CHANGE, change, strict=True)) for change in CHANGES]
    changed = env.from_source(MemorySource(changes, CHANGE), uid="changes")
    prices = database.sink("prices", mode="upsert", key="country", create=True)
    changed.sink_to(prices, uid="last")
    return env


def tables(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: [tuple(row.values()) for row in database.rows(name)] for name in ("orders", "prices")
    }


RIGHT = {"orders": ORDERS, "prices": [("FR", 7), ("DK", 9)]}


@pytest.mark.parametrize("point", POINTS)
def test_a_job_that_is_killed_writes_every_row_once(point: Any) -> None:
    for epoch in itertools.count():
        database = Database()
        result = run_local(job(database), crashes=[(epoch, point)])
        assert tables(database) == RIGHT
        if not result.restarts:
            break
    assert epoch >= 3


@pytest.mark.parametrize("point", [None, *POINTS])
@pytest.mark.parametrize(
    ("step", "applied"), [("write", False), ("commit", False), ("commit", True)]
)
def test_a_job_whose_connection_is_lost_writes_every_row_once(
    step: Any, applied: bool, point: Any
) -> None:
    for after in itertools.count():
        database = Database()
        database.fail(step, after=after, applied=applied)
        run_local(job(database), crashes=[(1, point)] if point else [])
        assert tables(database) == RIGHT
        if database.unreached:
            break
    assert after >= 6


def test_a_job_that_begins_anew_writes_all_rows_again() -> None:
    database = Database()
    for _ in range(2):
        run_local(job(database))
    assert tables(database) == RIGHT | {"orders": ORDERS * 2}
    assert len(database.rows("headrace_markers")) == 4
