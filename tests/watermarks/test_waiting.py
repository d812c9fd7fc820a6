"""Which partition holds a step back, told from what is known of time."""

from datetime import UTC, datetime, timedelta

from headrace._watermarks.tracker import PartitionTime, Tracker
from headrace._watermarks.waiting import Known, waiting_steps
from headrace.watermarks import CLOCK, NO_WATERMARK, WatermarkStrategy

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FOUR = WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=4))


def seen(max_s: int | None, active_s: int) -> PartitionTime:
    return PartitionTime(NO_WATERMARK, active_s * SECOND, None if max_s is None else max_s * SECOND)


def known(parts, watermark, *, strategy=FOUR, outlooks=None, **others) -> Known:
    return Known(
        Tracker({"bids": parts}),
        {"bids": watermark, CLOCK: 99 * SECOND, **others},
        {"bids": strategy},
        {"per-key": ("bids", *others), "by-clock": (CLOCK,)},
        {"per-key": [20 * SECOND - 1, 7, None]} if outlooks is None else outlooks,
    )


def at(second: float) -> datetime:
    return EPOCH + timedelta(seconds=second)


def test_the_partition_that_is_furthest_behind_is_named_with_its_last_event_and_silence():
    parts = {"a": seen(30, 50), "b": seen(12, 40)}
    (step,) = waiting_steps(known(parts, 8 * SECOND - 1), 60 * SECOND).steps
    assert (step.step, step.source, step.partition, step.keys) == ("per-key", "bids", "b", 7)
    assert step.last_event == at(12)
    assert step.partition_watermark == at(8) - timedelta(microseconds=1)
    assert step.silent == timedelta(seconds=20)
    assert step.fires_at == at(20) - timedelta(microseconds=1)
    # 24 s - 4 s - 1 us is the end of the window less one microsecond.
    assert step.needs == at(24)


def test_a_partition_below_the_watermark_does_not_hold_it():
    finished = seen(2, 10)
    parts = {"done": finished, "a": seen(30, 50), "b": seen(12, 40)}
    (step,) = waiting_steps(known(parts, 8 * SECOND - 1), 60 * SECOND).steps
    assert step.partition == "b"


def test_an_idle_partition_is_not_blamed_while_another_counts():
    idle = FOUR.with_idleness(timedelta(seconds=15))
    parts = {"a": seen(14, 50), "b": seen(12, 40)}
    (step,) = waiting_steps(known(parts, 8 * SECOND - 1, strategy=idle), 60 * SECOND).steps
    assert step.partition == "a"
    assert step.idle_after == timedelta(seconds=15)


def test_a_partition_that_never_sent_anything_is_told_apart():
    parts = {"a": seen(30, 50), "b": seen(None, 5)}
    why = waiting_steps(known(parts, NO_WATERMARK), 60 * SECOND)
    assert why.steps[0].partition == "b"
    assert why.steps[0].watermark is None
    assert "has shown no row yet" in str(why)
    assert "with_idleness" in str(why)


def test_of_several_sources_the_one_that_is_behind_is_named():
    parts = {"a": seen(30, 50)}
    (step,) = waiting_steps(known(parts, 26 * SECOND, slow=3 * SECOND), 60 * SECOND).steps
    assert step.source == "slow"


def test_a_step_by_the_clock_says_so():
    why = waiting_steps(known({}, 0, outlooks={"by-clock": [None, 3, 120 * SECOND]}), 100 * SECOND)
    assert why.steps[0].source == CLOCK
    assert "by the clock" in str(why)


def test_steps_without_rows_are_not_told_of():
    why = waiting_steps(known({}, 0, outlooks={"per-key": [None, 0, None]}), 0)
    assert why.steps == ()
    assert str(why) == "No step waits: no window holds rows."


def test_the_step_that_fires_next_comes_first():
    outlooks = {"per-key": [20 * SECOND, 1, None], "other": [10 * SECOND, 1, None]}
    why = waiting_steps(known({"a": seen(1, 1)}, 0, outlooks=outlooks), 2 * SECOND)
    assert [step.step for step in why.steps] == ["other", "per-key"]


def test_a_source_that_is_idle_as_a_whole_is_not_blamed():
    rests = FOUR.with_idleness(timedelta(seconds=15))
    time = Known(
        Tracker({"lively": {"0": seen(30, 59)}, "silent": {"0": seen(3, 5)}}),
        {"lively": 26 * SECOND, "silent": 3 * SECOND, "lively+silent": 26 * SECOND},
        {"lively": rests, "silent": rests},
        {"both": ("lively", "silent")},
        {"both": [40 * SECOND, 1, None]},
    )
    (step,) = waiting_steps(time, 60 * SECOND).steps
    assert step.source == "lively"
    assert step.watermark == at(26)


def test_a_source_that_woke_behind_the_others_is_blamed():
    rests = FOUR.with_idleness(timedelta(seconds=15))
    time = Known(
        Tracker({"lively": {"0": seen(30, 59)}, "awake": {"0": seen(7, 58)}}),
        {"lively": 26 * SECOND, "awake": 3 * SECOND, "awake+lively": 26 * SECOND},
        {"lively": rests, "awake": rests},
        {"both": ("lively", "awake")},
        {"both": [40 * SECOND, 1, None]},
    )
    (step,) = waiting_steps(time, 60 * SECOND).steps
    assert step.source == "awake"
