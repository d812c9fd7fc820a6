"""Windows check their numbers, and a timestamp falls into the windows that cover it."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import BuildError
from headrace.windows import Hopping, Tumbling, Window, windows_of

SECOND = timedelta(seconds=1)


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


def test_a_hop_that_does_not_fit_is_refused_with_sizes_that_do() -> None:
    with pytest.raises(BuildError, match=r"are 0:00:09 and 0:00:12\."):
        Hopping(10 * SECOND, 3 * SECOND)


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


@given(
    slide=st.integers(1, 50),
    panes=st.integers(1, 6),
    offset=st.integers(0, 49),
    ts=st.integers(-500, 500),
)
def test_a_timestamp_is_in_exactly_the_windows_that_cover_it(
    slide: int, panes: int, offset: int, ts: int
) -> None:
    window = Window(size_us=slide * panes, slide_us=slide, offset_us=offset % slide)
    starts = [window.offset_us + k * slide for k in range(-1200, 1200)]
    covering = [(s, s + window.size_us) for s in starts if s <= ts < s + window.size_us]
    assert windows_of(window, ts) == covering
    assert window.pane_start(ts) == covering[-1][0]
