"""A user's generator lives for one call; what it remembers is JSON."""

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._watermarks.generators import Generated, hear, speak
from headrace.errors import UserCodeError
from headrace.watermarks import WatermarkGenerator, WatermarkStrategy
from tests.examples import examples

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


class Lagging(WatermarkGenerator):
    """The greatest timestamp less a lag that grows with every epoch."""

    def __init__(self, lag: timedelta = timedelta(microseconds=5)) -> None:
        self.lag = lag
        self.latest: datetime | None = None
        self.epochs = 0

    def on_event(self, timestamp: datetime) -> None:
        self.latest = timestamp if self.latest is None else max(self.latest, timestamp)

    def on_epoch(self, clock: datetime) -> datetime | None:
        self.epochs += 1
        return None if self.latest is None else self.latest - self.epochs * self.lag


class Holding(WatermarkGenerator):
    """Remembers whatever it was made with, and what it hears as an array."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        self.greatest = np.datetime64(0, "us")

    def on_events(self, timestamps: Any) -> None:
        self.greatest = max(self.greatest, timestamps.max())

    def on_epoch(self, clock: datetime) -> datetime | None:
        return None


def strategy(factory: Any) -> WatermarkStrategy:
    return WatermarkStrategy.for_generator(factory)


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state))


def test_what_one_call_leaves_the_next_one_finds() -> None:
    chosen = strategy(Lagging)
    first = speak("s", "0", chosen, None, 0)
    assert first.promised_us is None
    heard = hear("s", "0", chosen, through_json(first.state), np.array([70, 90, 80]))
    second = speak("s", "0", chosen, Generated(None, through_json(heard)), 0)
    assert second.promised_us == 90 - 2 * 5
    assert second.state["epochs"] == 2


def test_a_watermark_that_falls_changes_nothing() -> None:
    chosen = strategy(Lagging)
    state = hear("s", "0", chosen, None, np.array([90]))
    first = speak("s", "0", chosen, Generated(None, state), 0)
    second = speak("s", "0", chosen, first, 0)
    assert (first.promised_us, second.promised_us) == (85, 85)


def test_the_array_form_sees_all_timestamps_at_once() -> None:
    state = hear("s", "0", strategy(Holding), None, np.array([7, 30, 20]))
    again = hear("s", "0", strategy(Holding), through_json(state), np.array([25]))
    assert again["greatest"] == {"@datetime64": 30}


def test_rows_before_1970_have_datetimes_too() -> None:
    state = hear("s", "0", strategy(Lagging), None, np.array([-1_000_001]))
    said = speak("s", "0", strategy(Lagging), Generated(None, state), 0)
    assert said.promised_us == -1_000_006


def test_the_clock_is_an_aware_datetime() -> None:
    class Clocked(Holding):
        def on_epoch(self, clock: datetime) -> datetime | None:
            return clock - timedelta(seconds=1)

    assert speak("s", "0", strategy(Clocked), None, 5_000_000).promised_us == 4_000_000


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.datetimes(timezones=st.just(UTC))
    | st.timedeltas(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text().filter(lambda t: not t.startswith("@")), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(values)
@examples(100)
def test_attributes_come_back_as_they_were(value: Any) -> None:
    seen = []

    class Asking(Holding):
        def on_epoch(self, clock: datetime) -> datetime | None:
            seen.append(self.value)
            return None

    said = speak("s", "0", strategy(lambda: Asking(value)), None, 0)
    speak("s", "0", strategy(Asking), Generated(None, through_json(said.state)), 0)
    assert seen == [value, value]


def test_numbers_that_are_no_json_come_back_too() -> None:
    made = strategy(lambda: Holding([math.inf, -math.inf, np.float64(1.5), np.int32(7)]))
    state = speak("s", "0", made, None, 0).state
    assert "Infinity" not in json.dumps(state)
    assert state["value"] == [{"@float": "inf"}, {"@float": "-inf"}, 1.5, 7]


@pytest.mark.parametrize(
    ("value", "about"),
    [
        ({1, 2}, "set"),
        ((1, 2), "tuple"),
        (object(), "object"),
        (datetime(2025, 1, 1), "has no time zone"),
        ({1: 2}, "the key 1"),
        ({"@float": "x"}, "the key '@float'"),
        ([{"deep": b"bytes"}], "bytes"),
    ],
)
def test_an_attribute_that_cannot_be_stored_is_named(value: Any, about: str) -> None:
    with pytest.raises(UserCodeError, match=r"attribute 'value' of Holding.*source 's'") as caught:
        speak("s", "0", strategy(lambda: Holding(value)), None, 0)
    assert about in str(caught.value)


def test_an_error_of_the_generator_names_the_source_and_the_line() -> None:
    class Broken(Holding):
        def on_epoch(self, clock: datetime) -> datetime | None:
            raise ZeroDivisionError("no luck")

        def on_events(self, timestamps: Any) -> None:
            raise SystemExit(3)

    with pytest.raises(UserCodeError, match=r"source 's' \(partition 'p'\) raised Zero.*no luck"):
        speak("s", "p", strategy(Broken), None, 0)
    with pytest.raises(UserCodeError, match=r"SystemExit: 3\n  at .*test_generators\.py"):
        hear("s", "p", strategy(Broken), None, np.array([1]))


@pytest.mark.parametrize("said", [datetime(2025, 1, 1), 17, "now"])
def test_only_an_aware_datetime_is_a_watermark(said: Any) -> None:
    class Odd(Holding):
        def on_epoch(self, clock: datetime) -> Any:
            return said

    with pytest.raises(UserCodeError, match="source 's' must return a datetime with a time zone"):
        speak("s", "0", strategy(Odd), None, 0)


def test_a_function_that_makes_something_else_is_told() -> None:
    with pytest.raises(UserCodeError, match="returned 3, no generator"):
        speak("s", "0", strategy(lambda: 3), None, 0)
