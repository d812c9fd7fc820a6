"""Flink's pages on temporal joins: FOR SYSTEM_TIME AS OF, with their orders, rates and products; results by hand.

rates       09:00 Euro 114, US Dollar 102, Yen 1       10:45 Euro 116   11:15 Euro 119   11:49 Pounds 108
orders              10:15 2 Euro   10:30 1 US Dollar   10:32 50 Yen   |   10:52 3 Euro   11:04 5 US Dollar
                          114            102                 1                  116            102
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace._graph.join_nodes import AsOfJoin
from headrace._graph.nodes import LATE, LATE_RIGHT, MAIN
from headrace.connectors.memory import MemorySource
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from tests.known_answers.timeline import at, clock_time, end, row, story
from tests.oracle.joins.asof import AsOfOracle

ORDERS = {"key": str, "value": int, "at": datetime}
RATES = {"key": str, "rate": int, "at": datetime}
CHANGES = RATES | {"change": str}

Build = Callable[[Any, Any], Any]
Run = Callable[[AsOfJoin, Sequence[StepEpoch]], Outputs]


def by_oracle(node: AsOfJoin, epochs: Sequence[StepEpoch]) -> Outputs:
    said = AsOfOracle(node).run(epochs)
    return {
        MAIN: [row for answer in said for _, row in answer.ticked + answer.settled],
        LATE: [row for answer in said for row in answer.late_left],
        LATE_RIGHT: [row for answer in said for row in answer.late_right],
    }


def by_engine(node: AsOfJoin, epochs: Sequence[StepEpoch]) -> Outputs:
    found = StepHarness(node, 2).run(epochs, restores={1: 3, 3: 2}, crashes=[2])
    return {output: found.get(output, []) for output in (MAIN, LATE, LATE_RIGHT)}


@pytest.fixture(params=[by_oracle, by_engine], ids=["oracle", "engine"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param


def node(build: Build, rates: dict[str, Any] = RATES) -> AsOfJoin:
    """The step that users get when they build it so; rates with a `change` are as a retracting step has them."""
    env = hr.Environment("story")
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(0)).with_timestamps("at")
    sources = [MemorySource([], ORDERS), MemorySource([], rates)]
    sources[1].carries_changes = "change" in rates
    streams = [
        env.from_source(source, watermarks=strategy, uid=uid)
        for source, uid in zip(sources, ["orders", "rates"], strict=True)
    ]
    build(*streams)
    (found,) = [step for step in env.graph.nodes if isinstance(step, AsOfJoin)]
    return found


def order(time: str, value: int, key: str) -> Any:
    us, fields = row(time, value, key)
    return SidedRow(us, {name: fields[name] for name in ORDERS}, 0)


def rate(time: str, key: str, value: int, change: str | None = None) -> Any:
    us, fields = row(time, value, key)
    kept = {"key": key, "rate": value, "at": fields["at"]}
    return SidedRow(us, kept if change is None else kept | {"change": change}, 1)


def told(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    found = [(clock_time(r["at"]), r["value"], r["key"], r["rate"]) for r in rows]
    return sorted(found, key=lambda result: result[:3])


def at_its_time(orders: Any, rates: Any) -> Any:
    return orders.join_versioned(rates, on="key", at=orders.time, uid="join")


#: The rates come before, between and behind the orders that they are for.
STREAM = story(
    at(None, None, rate("09:00", "US Dollar", 102), order("10:15", 2, "Euro")),
    at(None, "09:00", rate("09:00", "Euro", 114), rate("09:00", "Yen", 1), order("10:52", 3, "Euro")),
    at(None, "10:00", order("10:30", 1, "US Dollar"), rate("11:15", "Euro", 119)),
    at(None, "10:20", order("10:32", 50, "Yen"), rate("10:45", "Euro", 116)),
    at(None, "10:50", order("11:04", 5, "US Dollar"), order("11:30", 7, "Pounds")),
    at(None, "11:15", rate("11:49", "Pounds", 108), order("10:00", 1, "Euro")),
    end(),
)  # fmt: skip
CONVERTED = [
    ("10:15", 2, "Euro", 114),
    ("10:30", 1, "US Dollar", 102),
    ("10:32", 50, "Yen", 1),
    ("10:52", 3, "Euro", 116),
    ("11:04", 5, "US Dollar", 102),
]


def test_orders_are_converted_at_the_rate_of_their_time(run: Run) -> None:
    outputs = run(node(at_its_time), STREAM)
    assert told(outputs[MAIN]) == CONVERTED
    # SELECT SUM(o.amount * r.rate)
    assert sum(r["value"] * r["rate"] for r in outputs[MAIN]) == 228 + 102 + 50 + 348 + 510
    assert [clock_time(r["at"]) for r in outputs[LATE]] == ["10:00"]
    assert outputs[LATE_RIGHT] == []


def test_a_left_join_keeps_the_order_for_which_there_is_no_rate_yet(run: Run) -> None:
    left = node(
        lambda orders, rates: orders.join_versioned(rates, on="key", how="left", uid="join")
    )
    assert told(run(left, STREAM)[MAIN]) == [*CONVERTED, ("11:30", 7, "Pounds", None)]


def test_a_rate_holds_from_its_own_time_on(run: Run) -> None:
    # order_id  price  currency  conversion_rate  order_time
    # o_001     11.11  EUR       1.14             12:00:00
    # o_002     12.51  EUR       1.10             12:06:00
    epochs = story(
        at(None, None, rate("12:00", "EUR", 114), order("12:00", 1111, "EUR")),
        at(None, "11:59", order("12:06", 1251, "EUR"), rate("12:06", "EUR", 110)),
        end(),
    )
    outputs = run(node(at_its_time), epochs)
    assert told(outputs[MAIN]) == [("12:00", 1111, "EUR", 114), ("12:06", 1251, "EUR", 110)]


def test_a_row_waits_for_the_watermark_and_goes_out_only_once(run: Run) -> None:
    epochs = story(
        at(None, None, rate("09:00", "Euro", 114), order("10:15", 2, "Euro")),
        # Nothing at or before 10:15 can come any more when the watermark says 10:15 and a microsecond.
        at(None, "10:15", rate("10:15", "Euro", 115)),
        at(None, "10:15:01"),
        at(None, "10:16", rate("10:15", "Euro", 999)),
        end(),
    )
    outputs = run(node(at_its_time), epochs)
    assert told(outputs[MAIN]) == [("10:15", 2, "Euro", 115)]
    assert [r["rate"] for r in outputs[LATE_RIGHT]] == [999]


#: changelog   00:01 +I p_001 11.11   00:02 +I p_002 23.11   12:00 both -U and +U   18:00 -D p_001
PRODUCTS = [
    rate("00:01", "p_001", 1111, "+I"),
    rate("00:02", "p_002", 2311, "+I"),
    rate("12:00", "p_001", 1111, "-U"),
    rate("12:00", "p_001", 1299, "+U"),
    rate("12:00", "p_002", 2311, "-U"),
    rate("12:00", "p_002", 1999, "+U"),
    rate("18:00", "p_001", 1299, "-D"),
]


@pytest.mark.parametrize("cut", range(len(PRODUCTS) + 1))
def test_the_prices_of_products_at_some_times(run: Run, cut: int) -> None:
    times = ["00:01", "10:00", "12:00", "13:00", "17:59", "18:00", "20:00"]
    asked = [order(time, 1, product) for time in times for product in ("p_001", "p_002")]
    epochs = story(
        at(None, None, *PRODUCTS[:cut], *asked),
        at(None, "00:00", *PRODUCTS[cut:]),
        at(None, "11:00"),
        at(None, "15:00"),
        end(),
    )
    left = node(
        lambda orders, rates: orders.join_versioned(rates, on="key", how="left", uid="join"),
        CHANGES,
    )
    found = {(time, key): price for time, _, key, price in told(run(left, epochs)[MAIN])}
    prices = {
        "p_001": [1111, 1111, 1299, 1299, 1299, None, None],
        "p_002": [None, 2311, 1999, 1999, 1999, 1999, 1999],
    }
    assert found == {
        (time, key): price
        for key, listed in prices.items()
        for time, price in zip(times, listed, strict=True)
    }
