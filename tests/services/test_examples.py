"""The examples that need servers end with what code that knows nothing of Headrace computes."""

import importlib.util
import json
from collections import defaultdict
from datetime import timedelta
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from psycopg import sql

from headrace.connectors.memory import MemorySink
from headrace.testing import run_local
from tests.pages import ROOT
from tests.services.kafka_topics import Topics

pytestmark = pytest.mark.services


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_revenue_per_minute_is_the_sum_of_the_orders(
    kafka: Any, postgres: Any, topic: str, table: str, tmp_path: Path
) -> None:
    revenue = example("revenue_per_minute")
    revenue.TOPIC, revenue.TABLE, revenue.EVERY = topic, table, timedelta(seconds=7)
    for killed_at in (120, 500, 500):  # the last run finds everything written
        revenue.write_orders(kafka.bootstrap, killed_at)
    run_local(revenue.build(kafka.bootstrap, postgres.dsn, tmp_path))

    expected: dict[tuple[str, str], list[float]] = defaultdict(list)
    for records in Topics(kafka.bootstrap).all_of(topic, 2).values():
        for _, value in records:
            order = json.loads(value)
            expected[order["country"], order["at"][:16]].append(order["amount"])
    statement = sql.SQL(
        "select country, to_char(window_start at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI'), orders, revenue from {}"
    )
    with psycopg.connect(postgres.dsn) as connection:
        found = connection.execute(statement.format(sql.Identifier(table))).fetchall()
    assert sum(len(amounts) for amounts in expected.values()) == 500
    assert len(found) == len(expected)
    assert {
        (country, minute): (orders, pytest.approx(total))
        for country, minute, orders, total in found
    } == {key: (len(amounts), sum(amounts)) for key, amounts in expected.items()}


def test_orders_meet_customers_as_they_were_at_that_time(
    kafka: Any, topic: str, tmp_path: Path
) -> None:
    customers = example("customers_cdc")
    customers.CUSTOMERS, customers.ORDERS = f"{topic}-c", f"{topic}-o"
    everything = customers.messages
    customers.messages = lambda: islice(everything(), 4)  # killed there
    customers.write(kafka.bootstrap)
    customers.messages = everything
    customers.write(kafka.bootstrap)
    result = MemorySink()
    run_local(customers.build(kafka.bootstrap, tmp_path, result))
    by_order = sorted(result.to_pylist(), key=lambda row: int(row["order"]))
    assert by_order == sorted(_expected(customers), key=lambda row: int(row["order"]))


def _expected(customers: ModuleType) -> list[dict[str, Any]]:
    """Every message in the order of its second, and a dictionary of the customers."""
    known: dict[int, dict[str, Any]] = {}
    found = []
    for topic, _, content in sorted(customers.messages(), key=lambda message: message[1]):
        if content is None:
            continue
        message = json.loads(content)
        if topic == customers.ORDERS:
            customer = known.get(message["customer"], {})
            place = {"name": customer.get("name"), "city": customer.get("city")}
            found.append({"order": message["order"], "amount": message["amount"], **place})
        elif message["after"] is None:
            del known[message["before"]["id"]]
        else:
            known[message["after"]["id"]] = message["after"]
    return found
