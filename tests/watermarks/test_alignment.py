"""How far a partition may go: as the slowest of the others, and the drift."""

from datetime import timedelta
from typing import Any

from headrace._watermarks.alignment import PROBE, allowances
from headrace._watermarks.tracker import PartitionTime, Standing, Tracker
from headrace.watermarks import NO_WATERMARK, WatermarkStrategy

DRIFT = timedelta(microseconds=100)
ALIGNED = WatermarkStrategy.monotonous().with_timestamps("at").with_alignment("g", DRIFT)
IDLING = ALIGNED.with_idleness(timedelta(microseconds=50))


class Kind:
    """As much of a source as alignment looks at."""

    def __init__(self, *, row_positions: bool = True) -> None:
        self.row_positions = row_positions


def time(
    max_us: int | None, *, pace_us: float | None = 1.0, taken: int = 10**6, active_us: int = 0
) -> PartitionTime:
    return PartitionTime(NO_WATERMARK, active_us, max_us, None, pace_us, taken)


def limits(
    strategy: WatermarkStrategy = ALIGNED,
    *,
    standings: dict[str, Standing] | None = None,
    clock_us: int = 0,
    kind: Any = None,
    **times: PartitionTime,
) -> dict[str, int]:
    """One source "s"; all its partitions wait unless `standings` says otherwise."""
    found = allowances(
        Tracker({"s": times}),
        {"s": strategy},
        {"s": kind or Kind()},
        standings={"s": {**dict.fromkeys(times, "waiting"), **(standings or {})}},
        clock_us=clock_us,
    )
    return {name: limit for (_, name), limit in found.items()}


def test_the_faster_one_waits_and_the_slower_one_may_pass_it_by_the_drift() -> None:
    assert limits(a=time(0), b=time(500)) == {"a": 600, "b": 0}


def test_a_position_costs_what_was_measured() -> None:
    assert limits(a=time(0, pace_us=0.5), b=time(90, pace_us=4)) == {"a": 380, "b": 2}


def test_there_is_always_one_row_for_who_is_not_too_far() -> None:
    assert limits(a=time(0, pace_us=10**9), b=time(100, pace_us=10**9)) == {"a": 1, "b": 1}


def test_who_is_alone_is_not_limited() -> None:
    assert limits(a=time(0)) == {}
    assert limits(a=time(0), b=time(900), standings={"a": "finished"}) == {"a": 1000}
    assert limits(WatermarkStrategy.monotonous(), a=time(0), b=time(900)) == {}


def test_a_partition_at_its_end_holds_until_it_is_idle() -> None:
    times = {"a": time(0), "b": time(900)}
    assert limits(IDLING, **times, standings={"a": "open"}, clock_us=49)["b"] == 0
    assert "b" not in limits(IDLING, **times, standings={"a": "open"}, clock_us=50)
    assert limits(IDLING, **times, clock_us=50)["b"] == 0


def test_one_that_has_shown_nothing_holds_only_while_rows_of_it_wait() -> None:
    silent = {"a": time(None), "b": time(900)}
    assert limits(**silent, standings={"a": "open"}) == {"a": PROBE}
    assert limits(**silent) == {"a": PROBE, "b": 0}


def test_all_begin_with_small_steps_that_grow() -> None:
    assert limits(a=time(None), b=time(None)) == {"a": PROBE, "b": PROBE}
    known = {"a": time(0, pace_us=1e-9, taken=PROBE), "b": time(0, pace_us=None, taken=3)}
    assert limits(**known) == {"a": 10 * PROBE, "b": PROBE}


def test_files_are_tried_one_by_one() -> None:
    assert limits(kind=Kind(row_positions=False), a=time(None), b=time(None)) == {"a": 1, "b": 1}


def test_a_group_reaches_over_sources_and_others_are_left_alone() -> None:
    other = WatermarkStrategy.monotonous().with_timestamps("at").with_alignment("h", DRIFT)
    found = allowances(
        Tracker({"s": {"0": time(0)}, "t": {"0": time(900)}, "u": {"0": time(9_000)}}),
        {"s": ALIGNED, "t": ALIGNED, "u": other},
        {"s": Kind(), "t": Kind(), "u": Kind()},  # type: ignore[dict-item]
        standings={uid: {"0": "waiting"} for uid in "stu"},
        clock_us=0,
    )
    assert found == {("s", "0"): 1000, ("t", "0"): 0}
