"""Windows check their numbers, and a timestamp falls into the windows that cover it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import BuildError
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Cumulating, Hopping, Tumbling, Window, windows_of
from tests.oracle.assigners import spans_of

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
HOUR_US = 3_600_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def test_a_tumbling_window_is_one_pane() -> None:
    window = Tumbling(10 * SECOND)
    assert (window.size_us, window.slide_us, window.panes) == (10_000_000, 10_000_000, 1)


def test_a_hopping_window_is_made_of_panes_of_its_slide() -> None:
    window = Hopping(60 * SECOND, 10 * SECOND)
    assert (window.panes, window.pane_us) == (6, 10_000_000)


@pytest.mark.parametrize("size", [timedelta(0), -SECOND, 10, None])
def test_a_size_that_is_no_positive_duration_is_refused(size: Any) -> None:
    with pytest.raises(BuildError, match="The size of a tumbling window"):
        Tumbling(size)
    with pytest.raises(BuildError, match="The size of a hopping window"):
        Hopping(size, SECOND)


@pytest.mark.parametrize("slide", [timedelta(0), -SECOND, 10])
def test_a_slide_that_is_no_positive_duration_is_refused(slide: Any) -> None:
    with pytest.raises(BuildError, match="The slide of a hopping window"):
        Hopping(10 * SECOND, slide)


def test_a_slide_longer_than_the_size_is_refused() -> None:
    with pytest.raises(BuildError, match=r"slide \(0:00:11\) is longer than the size \(0:00:10\)"):
        Hopping(10 * SECOND, 11 * SECOND)


def test_a_size_that_is_no_multiple_of_the_slide_makes_smaller_panes() -> None:
    window = Hopping(10 * SECOND, 4 * SECOND)
    assert (window.panes, window.pane_us) == (5, 2_000_000)
    assert [start // 10**6 for start, _ in windows_of(window, 9_000_000)] == [0, 4, 8]
    assert [start // 10**6 for start, _ in windows_of(window, 11_000_000)] == [4, 8]


def test_a_step_that_does_not_fit_is_refused_with_sizes_that_do() -> None:
    with pytest.raises(BuildError, match=r"are 0:00:09 and 0:00:12\."):
        Cumulating(10 * SECOND, 3 * SECOND)


@pytest.mark.parametrize(
    "make", [Tumbling, lambda s: Hopping(s, SECOND), lambda s: Cumulating(s, s)]
)
def test_a_window_longer_than_all_years_is_refused(make: Any) -> None:
    with pytest.raises(BuildError, match=r"windows.Global\(\)"):
        make(timedelta.max - timedelta(microseconds=999_999))


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(BuildError, match="zone='Mars/Olympus'"):
        Tumbling(timedelta(days=1), zone="Mars/Olympus")


def test_with_a_zone_windows_are_whole_days() -> None:
    with pytest.raises(BuildError, match="whole days"):
        Tumbling(6 * HOUR, zone="Europe/Berlin")
    with pytest.raises(BuildError, match="grows over one day"):
        Cumulating(2 * DAY, HOUR, zone="Europe/Berlin")


def test_an_offset_that_is_no_duration_is_refused() -> None:
    with pytest.raises(BuildError, match="The offset of a window"):
        Tumbling(SECOND, offset=5)  # type: ignore[arg-type]


def test_offsets_that_differ_by_whole_slides_are_the_same_window() -> None:
    assert Tumbling(10 * SECOND, offset=-3 * SECOND) == Tumbling(10 * SECOND, offset=27 * SECOND)


def test_an_offset_moves_the_starts() -> None:
    window = Tumbling(timedelta(days=1), offset=timedelta(hours=5))
    assert windows_of(window, 0) == [(-19 * 3600 * 10**6, 5 * 3600 * 10**6)]


def test_windows_say_what_they_are() -> None:
    assert str(Tumbling(10 * SECOND)) == "tumbling 0:00:10"
    assert str(Hopping(10 * SECOND, 5 * SECOND, offset=SECOND)) == (
        "hopping 0:00:10 every 0:00:05, offset 0:00:01"
    )


def test_growing_windows_share_their_start() -> None:
    window = Cumulating(DAY, 6 * HOUR, offset=HOUR)
    hours = [(s // HOUR_US, e // HOUR_US) for s, e in windows_of(window, 8 * HOUR_US)]
    assert hours == [(1, 13), (1, 19), (1, 25)]
    # At the day's change a row belongs to the new day only.
    assert next(e - s for s, e in windows_of(window, 25 * HOUR_US)) == 6 * HOUR_US


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2025-03-30", 23),
        ("Europe/Berlin", "2025-10-26", 25),
        ("Europe/Berlin", "2025-06-01", 24),
        ("Australia/Lord_Howe", "2025-04-06", 24.5),
        # There is no midnight: the day begins at one o'clock.
        ("America/Sao_Paulo", "2018-11-04", 23),
        ("Africa/Cairo", "2024-04-26", 23),
        # The clock is set back at midnight: 23:00 to 24:00 is shown twice, and belongs to the day before.
        ("Africa/Cairo", "2024-10-31", 25),
    ],
)
def test_a_day_has_the_hours_that_its_zone_gives_it(zone: str, day: str, hours: float) -> None:
    noon = us(datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=ZoneInfo(zone)))
    ((start, end),) = windows_of(Tumbling(DAY, zone=zone), noon)
    assert (end - start) / HOUR_US == hours
    shown = EPOCH + timedelta(microseconds=start)
    assert str(shown.astimezone(ZoneInfo(zone)).date()) == day


def test_a_day_that_the_calendar_left_out_is_no_window() -> None:
    # Samoa went to bed on the 29th and rose on the 31st.
    window = Tumbling(DAY, zone="Pacific/Apia")
    start = us(datetime(2011, 12, 29, 12, tzinfo=ZoneInfo("Pacific/Apia")))
    (before,), (behind,) = windows_of(window, start), windows_of(window, start + 24 * HOUR_US)
    assert before[1] == behind[0]
    assert str(
        (EPOCH + timedelta(microseconds=behind[0])).astimezone(ZoneInfo("Pacific/Apia"))
    ) == ("2011-12-31 00:00:00+14:00")


def test_days_of_several_begin_with_the_date_of_1970_there() -> None:
    zone = "America/New_York"
    ((start, _),) = windows_of(Tumbling(3 * DAY, zone=zone), 0)
    shown = (EPOCH + timedelta(microseconds=start)).astimezone(ZoneInfo(zone))
    assert str(shown) == "1969-12-29 00:00:00-05:00"


ALIGNED = [
    Window(4, 4), Window(5, 5, 2), Window(6, 2), Window(6, 4, 1), Window(10, 4), Window(7, 3, 2),
    Window(7, 5), Window(8, 2, 3, None, True), Window(6, 6, 1, None, True), Window(5, 1, 2, None, True),
]  # fmt: skip
CHANGES = {
    "Europe/Berlin": (1301187600, 1319936400),
    "America/Sao_Paulo": (1541300400, 1550368800),
    "Africa/Cairo": (1714082400, 1730408400),
    "Australia/Lord_Howe": (1301756400, 1317483000),
    "Pacific/Apia": (1325239200,),
}
places = st.sampled_from([(zone, at) for zone, changes in CHANGES.items() for at in changes])


@st.composite
def zoned(draw: st.DrawFn) -> tuple[Window, int]:
    """A window in a zone and an instant around a change of its clock."""
    zone, change = draw(places)
    offset = draw(st.sampled_from([0, 1, 5, -3])) * HOUR
    windows = [
        Tumbling(DAY, zone=zone, offset=offset),
        Tumbling(2 * DAY, zone=zone, offset=offset),
        Hopping(3 * DAY, DAY, zone=zone, offset=offset),
        Hopping(36 * HOUR, DAY, zone=zone, offset=offset),
        Cumulating(DAY, HOUR, zone=zone, offset=offset),
        Cumulating(DAY, HOUR / 2, zone=zone, offset=offset),
    ]
    near = draw(st.integers(-60, 60)) * HOUR_US // 2 + draw(st.integers(-1, 1))
    return draw(st.sampled_from(windows)), change * 10**6 + near


plain = st.tuples(st.sampled_from(ALIGNED), st.integers(-500, 500))


@given(plain | zoned())
def test_a_timestamp_is_in_exactly_the_windows_that_cover_it(case: tuple[Window, int]) -> None:
    window, ts = case
    assert windows_of(window, ts) == spans_of(window, ts, {})


@given(plain | zoned(), st.integers(-3, 3))
def test_windows_are_passed_when_the_watermark_has_their_last_microsecond(
    case: tuple[Window, int], near: int
) -> None:
    window, ts = case
    pane = window.pane_start(ts)
    ends = window.ends_of(pane, pane, window.last_end(pane))
    for end in ends:
        last = window.span(end)[1] - 1
        assert (end <= window.passed(last + near)) == (near >= 0)
        passed = window.passed(last + near)
        assert window.ends_of(pane, passed, ends[-1]) == [e for e in ends if e > passed]
        assert window.ends_of(pane, pane, passed) == [e for e in ends if e <= passed]
        following = window.next_end(pane, passed)
        assert (following is None) == (ends[-1] <= passed)
        assert following is None or window.span(following) in map(window.span, ends)
        assert (pane < window.first_open(passed)) == (ends[-1] <= passed)
        told_apart = [
            e for e in window.ends_of(window.start_of(end), passed, ends[-1]) if e <= pane
        ]
        if window.cumulating and ends[-1] > passed:
            assert (pane >= window.first_apart(passed)) == bool(told_apart)


@given(st.lists(zoned(), min_size=1), st.lists(st.integers(-500, 500)))
def test_panes_of_many_timestamps_are_those_of_each(cases: list[Any], more: list[int]) -> None:
    window = cases[0][0]
    times = [ts for _, ts in cases] + more
    assert window.pane_starts(np.array(times)).tolist() == [window.pane_start(ts) for ts in times]


@pytest.mark.parametrize(
    "window",
    [Tumbling(DAY), Hopping(7 * DAY, DAY, offset=HOUR), Cumulating(DAY, HOUR),
     Tumbling(DAY, zone="Europe/Berlin"), Cumulating(DAY, HOUR, zone="Pacific/Apia")],
    ids=str,
)  # fmt: skip
def test_no_time_is_too_far(window: Window) -> None:
    first, last = us(datetime.min.replace(tzinfo=UTC)), us(datetime.max.replace(tzinfo=UTC))
    times = [first, 0, last, END_OF_TIME, NO_WATERMARK]
    starts = window.pane_starts(np.array(times)).tolist()
    assert starts[:3] == [window.pane_start(ts) for ts in times[:3]]
    assert window.first_open(window.passed(NO_WATERMARK)) < starts[0]
    assert max(starts) < window.first_open(window.passed(END_OF_TIME)) <= END_OF_TIME
    for ts in times[:3]:
        spans = windows_of(window, ts)
        assert all(start <= ts < end for start, end in spans)
