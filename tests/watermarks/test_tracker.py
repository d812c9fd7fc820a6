"""Time per source partition: the minimum of those that count, and it never falls."""

from collections.abc import Mapping
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from headrace._watermarks.tracker import Standing, Tracker, advance, observe
from headrace.watermarks import END_OF_TIME, NO_WATERMARK, WatermarkStrategy
from tests.examples import examples

BOUNDED = WatermarkStrategy.bounded_out_of_orderness(timedelta(microseconds=10))
IDLING = BOUNDED.with_idleness(timedelta(microseconds=100))


def seen(
    tracker: Tracker, maxima: Mapping[str, int], *, w: int = NO_WATERMARK, clock_us: int = 0
) -> Tracker:
    """One epoch of the source "s" that had these partitions; -1 stands for a partition without rows."""
    return observe(
        tracker,
        {"s": {name: ts for name, ts in maxima.items() if ts >= 0}},
        partitions={"s": list(maxima)},
        watermarks={"s": w},
        clock_us=clock_us,
    )


def watermark(
    tracker: Tracker,
    *,
    before: int = NO_WATERMARK,
    clock_us: int = 0,
    strategy: WatermarkStrategy | None = BOUNDED,
    **standings: Standing,
) -> int:
    return advance(
        tracker, {"s": before}, {"s": strategy}, standings={"s": standings}, clock_us=clock_us
    )["s"]


def test_a_source_without_rows_has_no_watermark() -> None:
    assert watermark(Tracker()) == NO_WATERMARK
    assert watermark(Tracker(), a="open") == NO_WATERMARK


def test_the_watermark_is_one_below_what_the_bound_allows() -> None:
    assert watermark(seen(Tracker(), {"a": 100})) == 100 - 10 - 1


def test_the_slowest_partition_decides() -> None:
    assert watermark(seen(Tracker(), {"a": 100, "b": 50})) == 39


def test_a_partition_without_rows_holds_the_source() -> None:
    assert watermark(seen(Tracker(), {"a": 100, "b": -1})) == NO_WATERMARK


def test_a_smaller_timestamp_does_not_lower_the_maximum() -> None:
    assert watermark(seen(seen(Tracker(), {"a": 100}), {"a": 60})) == 89


def test_a_finished_partition_no_longer_counts() -> None:
    tracker = seen(Tracker(), {"a": 100, "b": 50})
    assert watermark(tracker, a="open", b="finished") == 89


def test_a_source_whose_partitions_are_all_finished_is_at_the_end_of_time() -> None:
    tracker = seen(Tracker(), {"a": 100, "b": 50})
    assert watermark(tracker, a="finished", b="finished") == END_OF_TIME


def test_a_partition_that_no_epoch_has_seen_keeps_the_source_from_ending() -> None:
    tracker = seen(Tracker(), {"a": 100})
    assert watermark(tracker, a="finished", b="open") == NO_WATERMARK
    assert watermark(tracker, before=70, a="finished", b="waiting") == 70


def test_a_partition_that_the_outside_does_not_mention_still_counts() -> None:
    tracker = seen(Tracker(), {"a": 100, "b": 50})
    assert watermark(tracker, a="finished") == 39


def test_a_new_partition_joins_at_the_watermark_and_holds_it() -> None:
    tracker = seen(Tracker(), {"a": 100})
    tracker = seen(tracker, {"a": 200, "b": -1}, w=89)
    assert watermark(tracker, before=89) == 89
    assert watermark(seen(tracker, {"a": 200, "b": 20}, w=89), before=89) == 89
    assert watermark(seen(tracker, {"a": 200, "b": 150}, w=89), before=89) == 139


def test_an_idle_partition_does_not_count_until_it_has_rows_again() -> None:
    tracker = seen(seen(Tracker(), {"a": 100, "b": 50}), {"a": 300, "b": -1}, clock_us=150)
    assert watermark(tracker, strategy=IDLING, clock_us=99) == 39
    assert watermark(tracker, strategy=IDLING, clock_us=150) == 289
    back = seen(tracker, {"a": -1, "b": 60}, clock_us=160)
    assert watermark(back, strategy=IDLING, before=289, clock_us=160) == 289
    assert watermark(back, strategy=IDLING, clock_us=160) == 49


def test_a_partition_with_unread_rows_is_never_idle() -> None:
    tracker = seen(seen(Tracker(), {"a": 100, "b": 50}), {"a": 300, "b": -1}, clock_us=150)
    assert watermark(tracker, strategy=IDLING, clock_us=200, a="open", b="waiting") == 39


def test_when_all_are_idle_the_source_goes_up_to_the_greatest_and_stays() -> None:
    tracker = seen(Tracker(), {"a": 100, "b": 50})
    assert watermark(tracker, strategy=IDLING, clock_us=5_000) == 89
    assert watermark(tracker, strategy=IDLING, before=89, clock_us=9_000) == 89


def test_without_an_idleness_nothing_is_ever_idle() -> None:
    assert watermark(seen(Tracker(), {"a": 100, "b": 50}), clock_us=10**15) == 39


def test_a_source_without_a_strategy_has_no_watermark_even_when_finished() -> None:
    assert watermark(seen(Tracker(), {"a": 100}), strategy=None, a="finished") == NO_WATERMARK


def test_timestamps_at_the_ends_of_int64_stay_within_it() -> None:
    low = observe(
        Tracker(),
        {"s": {"a": NO_WATERMARK}},
        partitions={"s": ["a"]},
        watermarks={},
        clock_us=0,
    )
    assert watermark(low) == NO_WATERMARK
    exact = WatermarkStrategy.monotonous()
    assert watermark(seen(Tracker(), {"a": END_OF_TIME}), strategy=exact) < END_OF_TIME


def test_sources_do_not_disturb_each_other() -> None:
    tracker = observe(
        seen(Tracker(), {"a": 100}),
        {"t": {"x": 7_000}},
        partitions={"t": ["x"]},
        watermarks={},
        clock_us=0,
    )
    vector = advance(tracker, {}, {"s": BOUNDED, "t": BOUNDED}, standings={}, clock_us=0)
    assert vector == {"s": 89, "t": 6_989}


epochs = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abc"), st.integers(-1, 1_000), min_size=1),
        st.integers(0, 200),
    ),
    max_size=12,
)


@given(epochs)
@examples(100)
def test_a_watermark_never_falls_and_survives_json(
    history: list[tuple[dict[str, int], int]],
) -> None:
    tracker, w, clock_us = Tracker(), NO_WATERMARK, 0
    for maxima, passed_us in history:
        clock_us += passed_us
        tracker = seen(tracker, maxima, w=w, clock_us=clock_us)
        assert Tracker.from_json(tracker.to_json()) == tracker
        after = watermark(tracker, before=w, strategy=IDLING, clock_us=clock_us)
        assert after >= w
        greatest = max((p.max_us or 0) for p in tracker.sources["s"].values())
        assert after == NO_WATERMARK or after < max(greatest, 1)
        w = after
