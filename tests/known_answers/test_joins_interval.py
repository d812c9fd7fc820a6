"""Flink's pages on interval joins: the streams of their picture, their orders and shipments; results by hand.

between(-2 ms, +1 ms)         green    0 1         6 7
                              orange   0   2 3 4 5   7          4 sees 2 ... 5, where nothing is
                                       |   |-|-|---- sees 0, 1, 2, 3: (2, 0), (2, 1)

within four hours             orders     10:00 1   10:02 2   10:03 3   10:05 4
                              shipments  11:00 1   11:30 4   12:00 3   17:00 2      the last is too late
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace._graph.join_nodes import IntervalJoin
from headrace._graph.nodes import MAIN
from headrace.connectors.memory import MemorySource
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import TIME, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.known_answers.timeline import at, clock_time, end, row, story, us
from tests.oracle.joins.interval import IntervalOracle

ROWS = {"key": str, "value": int, "at": datetime}
MILLISECOND = timedelta(milliseconds=1)
HOUR = timedelta(hours=1)

Run = Callable[[IntervalJoin, Sequence[StepEpoch]], list[dict[str, Any]]]


def by_oracle(node: IntervalJoin, epochs: Sequence[StepEpoch]) -> list[dict[str, Any]]:
    oracle = IntervalOracle(node)
    return [
        made | {TIME: time}
        for epoch in epochs
        for said in oracle.epoch(epoch)
        for time, made in said.get(MAIN, ())
    ]


def by_engine(node: IntervalJoin, epochs: Sequence[StepEpoch]) -> list[dict[str, Any]]:
    harness = StepHarness(node, 2, stamped=True)
    return harness.run(epochs, restores={1: 3, 3: 2}, crashes=[2])[MAIN]


@pytest.fixture(params=[by_oracle, by_engine], ids=["oracle", "engine"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param


def near(lower: timedelta, upper: timedelta, **said: Any) -> IntervalJoin:
    """The step that users get when they build it so."""
    env = hr.Environment("story")
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    left, right = (
        env.from_source(MemorySource([], ROWS), watermarks=strategy, uid=uid)
        for uid in ("left", "right")
    )
    pair = left.key_by("key").interval_join(right.key_by("key"))
    pair.between(lower, upper, uid="near", **said)
    (node,) = [step for step in env.graph.nodes if isinstance(step, IntervalJoin)]
    return node


ORANGE, GREEN = (0, 2, 3, 4, 5, 7), (0, 1, 6, 7)


def colours() -> list[StepEpoch]:
    """Both streams in order, an epoch a millisecond, and then the end."""
    epochs = []
    for ms in range(8):
        rows = [
            SidedRow(1000 * ms, {"key": "x", "value": ms, "at": None}, side)
            for side, numbers in enumerate((ORANGE, GREEN))
            if ms in numbers
        ]
        before = 1000 * ms - 1001 if ms else NO_WATERMARK
        epochs.append(StepEpoch(before, 1000 * ms - 1, rows))
    return [*epochs, StepEpoch(6999, END_OF_TIME)]


def test_the_picture_of_orange_and_green(run: Run) -> None:
    found = run(near(-2 * MILLISECOND, MILLISECOND), colours())
    pairs = [(0, 0), (0, 1), (2, 0), (2, 1), (3, 1), (5, 6), (7, 6), (7, 7)]
    assert sorted((r["value"], r["value_right"]) for r in found) == pairs
    # A pair has the later time of the two, as Flink's process function gives it.
    assert all(r[TIME] == 1000 * max(r["value"], r["value_right"]) for r in found)


def test_the_same_without_its_ends(run: Run) -> None:
    # .lowerBoundExclusive().upperBoundExclusive(): one millisecond before, and the same one.
    node = near(-2 * MILLISECOND, MILLISECOND, lower_inclusive=False, upper_inclusive=False)
    found = run(node, colours())
    pairs = [(0, 0), (2, 1), (7, 6), (7, 7)]
    assert sorted((r["value"], r["value_right"]) for r in found) == pairs


def test_orange_ones_that_see_nothing(run: Run) -> None:
    found = run(near(-2 * MILLISECOND, MILLISECOND, how="left"), colours())
    alone = [(r["value"], r[TIME]) for r in found if r["value_right"] is None]
    assert alone == [(4, 5000)], "certain a millisecond later, when no green one can come"


def order(time: str, number: int) -> SidedRow:
    at_us, fields = row(time, number, f"order {number}")
    return SidedRow(at_us, {name: fields[name] for name in ROWS}, 0)


def shipment(time: str, number: int) -> SidedRow:
    return order(time, number)._replace(side=1)


SHIPPED = story(
    at(None, None, order("10:00", 1), order("10:02", 2), order("10:03", 3), order("10:05", 4)),
    at(None, "10:05", shipment("11:00", 1)),
    at(None, "11:00", shipment("11:30", 4), shipment("12:00", 3)),
    at(None, "12:00"),
    at(None, "17:00", shipment("17:00", 2)),
    end(),
)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_orders_that_are_shipped_within_four_hours(run: Run, how: Any) -> None:
    """WHERE o.id = s.order_id AND o.order_time BETWEEN s.ship_time - INTERVAL '4' HOUR AND s.ship_time."""
    found = run(near(timedelta(0), 4 * HOUR, how=how), SHIPPED)
    shipped = [
        ("order 1", "10:00", "11:00"),
        ("order 3", "10:03", "12:00"),
        ("order 4", "10:05", "11:30"),
    ]
    alone = {
        "left": [("order 2", "10:02", None)],
        "right": [("order 2", None, "17:00")],
        "full": [("order 2", "10:02", None), ("order 2", None, "17:00")],
    }
    told = [(r["key"], *(r[n] and clock_time(r[n]) for n in ("at", "at_right"))) for r in found]
    assert sorted(told, key=repr) == sorted(shipped + alone.get(how, []), key=repr)
    times = {r["at"] and clock_time(r["at"]): r[TIME] for r in found if r["at_right"] is None}
    assert times == ({"10:02": us("14:02")} if how in ("left", "full") else {})
