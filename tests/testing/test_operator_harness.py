"""`OperatorHarness`: a step by hand, as a user tests one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySource
from headrace.errors import BuildError
from headrace.testing import OperatorHarness
from headrace.windows import Session, Tumbling

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BIG = hr.OutputTag("big", {"name": str, "amount": int})


@dataclass
class Payment:
    name: str
    amount: int
    at: datetime = NOON


class Reminder(hr.KeyedProcessFunction):
    """Reports a minute after the last payment, by event time, and an hour after the first, by the clock."""

    total: hr.state.Value[int]

    def process_element(self, payment: Any, ctx: Any) -> None:
        if self.total.value() is None:
            ctx.timers.register_processing_time(ctx.clock + timedelta(hours=1))
        self.total.update((self.total.value() or 0) + payment.amount)
        ctx.timers.register_event_time(ctx.timestamp + 60 * SECOND)
        if payment.amount > 100:
            ctx.output(BIG, {"name": payment.name, "amount": payment.amount})

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[dict[str, Any]]:
        yield {"name": ctx.key, "total": self.total.value(), "by": ctx.time_domain}


def payments(env: hr.Environment | None = None, uid: str = "payments") -> Any:
    times = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    env = env or hr.Environment("test")
    return env.from_source(MemorySource([], Payment), watermarks=times, uid=uid)


@pytest.fixture
def reminder() -> OperatorHarness:
    schema = {"name": str, "total": int, "by": str}
    step = payments().key_by("name").process(
        Reminder(), schema=schema, side_outputs=[BIG], uid="reminder"
    )  # fmt: skip
    return OperatorHarness(step)


def test_timers_fire_when_the_watermark_passes_them(reminder: OperatorHarness) -> None:
    reminder.row(Payment("ann", 3), at=NOON)
    reminder.row({"name": "ann", "amount": 4}, at=NOON + SECOND)
    reminder.watermark(NOON + 59 * SECOND)
    assert reminder.take() == []
    reminder.watermark(NOON + 60 * SECOND)
    assert reminder.take() == [{"name": "ann", "total": 7, "by": "event"}]
    assert reminder.take() == []
    reminder.end()
    assert len(reminder.take()) == 1


def test_timers_of_the_clock_fire_when_it_is_moved(reminder: OperatorHarness) -> None:
    reminder.clock(NOON)
    reminder.row(Payment("ann", 3), at=NOON)
    reminder.clock(NOON + timedelta(minutes=59))
    assert reminder.take() == []
    reminder.clock(NOON + timedelta(hours=1))
    assert reminder.take() == [{"name": "ann", "total": 3, "by": "processing"}]


def test_side_outputs_are_taken_by_tag_or_name(reminder: OperatorHarness) -> None:
    for _ in range(2):
        reminder.row(Payment("ann", 300), at=NOON)
    reminder.row(Payment("bob", 1), at=NOON)
    expected = [{"name": "ann", "amount": 300}] * 2
    assert reminder.take(BIG) == expected
    reminder.row(Payment("ann", 300), at=NOON)
    assert reminder.take("big") == expected[:1]


@pytest.mark.parametrize("shards", [1, 3])
def test_state_survives_a_restore(reminder: OperatorHarness, shards: int) -> None:
    for name in ("ann", "bob", "cid"):
        reminder.row(Payment(name, 3), at=NOON)
    reminder.restore(shards)
    reminder.row(Payment("ann", 4), at=NOON)
    reminder.end()
    assert sorted((row["name"], row["total"]) for row in reminder.take()) == [
        ("ann", 7), ("bob", 3), ("cid", 3),
    ]  # fmt: skip


def test_a_window_gives_results_and_late_rows() -> None:
    window = payments().key_by("name").window(Tumbling(10 * SECOND))
    harness = OperatorHarness(window.aggregate(total=hr.sum("amount"), uid="sums"))
    harness.row(Payment("ann", 3), at=NOON)
    harness.watermark(NOON + 10 * SECOND)
    harness.row(Payment("ann", 4), at=NOON)
    (result,) = harness.take()
    assert (result["total"], result["window_end"]) == (3, NOON + 10 * SECOND)
    assert [row["amount"] for row in harness.take("late")] == [4]


def test_a_reduced_window_is_the_step_and_not_what_follows_it() -> None:
    window = payments().key_by("name").window(Session(10 * SECOND))
    step = window.reduce(lambda a, b: Payment(a.name, a.amount + b.amount, a.at), uid="sums")
    harness = OperatorHarness(step)
    harness.row(Payment("ann", 3), at=NOON)
    harness.row(Payment("ann", 4), at=NOON + SECOND)
    harness.end()
    assert len(harness.take()) == 1


def test_a_join_has_two_inputs() -> None:
    env = hr.Environment("test")
    left, right = (payments(env, uid) for uid in ("left", "right"))
    near = left.interval_join(right, on="name").between(-SECOND, SECOND, uid="near")
    harness = OperatorHarness(near)
    harness.row(Payment("ann", 3), at=NOON)
    harness.row(Payment("ann", 4), at=NOON + SECOND, input=1)
    harness.row(Payment("ann", 5), at=NOON + 2 * SECOND, input=1)
    assert [(row["amount"], row["amount_right"]) for row in harness.take()] == [(3, 4)]
    harness.watermark(NOON + 10 * SECOND)
    harness.row(Payment("ann", 6), at=NOON, input=1)
    assert [row["amount"] for row in harness.take("late_right")] == [6]
    with pytest.raises(BuildError, match="no input 2; it has 0 and 1"):
        harness.row(Payment("ann", 3), at=NOON, input=2)


def test_a_step_without_a_key_is_refused_with_what_to_do() -> None:
    with pytest.raises(BuildError, match=r"runs one keyed step.*'small' is a filter.*run_local"):
        OperatorHarness(payments().filter(hr.col("amount") < 3, uid="small"))


@pytest.mark.parametrize("other", ["nope", payments().key_by("name")])
def test_what_no_step_returned_is_refused(other: Any) -> None:
    with pytest.raises(BuildError, match=r"takes the stream that a keyed step .* returned, not"):
        OperatorHarness(other)


def test_a_step_that_only_moves_rows_is_refused() -> None:
    with pytest.raises(BuildError, match=r"runs one keyed step .* 'moved' is a repartition"):
        OperatorHarness(payments().rebalance(uid="moved"))


@pytest.mark.parametrize("shards", [0, 129])
def test_a_number_of_shards_that_no_job_has_is_refused(
    reminder: OperatorHarness, shards: int
) -> None:
    words = f"1 to 128 shards, not {shards}"
    with pytest.raises(BuildError, match=words):
        OperatorHarness(payments().key_by("name").first(uid="first"), shards=shards)
    reminder.row(Payment("ann", 3), at=NOON)
    with pytest.raises(BuildError, match=words):
        reminder.restore(shards)
    reminder.end()
    assert len(reminder.take()) == 1


@pytest.mark.parametrize("number", [1, -1])
def test_an_input_that_a_step_does_not_have_is_refused(
    reminder: OperatorHarness, number: int
) -> None:
    with pytest.raises(BuildError, match=rf"no input {number}; it has 0$"):
        reminder.row(Payment("ann", 3), at=NOON, input=number)


def test_a_column_that_an_input_does_not_have_is_refused(reminder: OperatorHarness) -> None:
    with pytest.raises(BuildError, match=r"no column amuont; its columns are name, amount, at"):
        reminder.row({"name": "ann", "amuont": 3}, at=NOON)


def test_an_output_that_a_step_does_not_have_is_refused(reminder: OperatorHarness) -> None:
    with pytest.raises(BuildError, match=r"no output 'laet'; it has main, late, errors, big$"):
        reminder.take("laet")
    with pytest.raises(BuildError, match="no output 'late_right'"):
        reminder.take("late_right")


def test_a_time_without_a_zone_is_refused(reminder: OperatorHarness) -> None:
    with pytest.raises(BuildError, match="no time zone"):
        reminder.row(Payment("ann", 3), at=datetime(2026, 1, 1))


def test_what_is_no_row_is_refused(reminder: OperatorHarness) -> None:
    with pytest.raises(BuildError, match="a row is a dict"):
        reminder.row(3, at=NOON)
