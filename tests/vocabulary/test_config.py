"""Epochs, restart policies and durations check themselves when they are made."""

from datetime import timedelta
from typing import Any

import pytest

from headrace.config import Epochs, Restart, to_us
from headrace.errors import BuildError

SECOND = timedelta(seconds=1)


def test_a_duration_becomes_whole_microseconds() -> None:
    assert to_us(timedelta(days=1, microseconds=3), "size") == 86_400_000_003


@pytest.mark.parametrize("value", [10, 1.5, "10s", None])
def test_a_duration_that_is_no_timedelta_is_refused(value: Any) -> None:
    with pytest.raises(
        BuildError, match=r"^the gap must be a datetime\.timedelta, not .*timedelta"
    ):
        to_us(value, "the gap")


def test_a_negative_duration_is_refused() -> None:
    with pytest.raises(BuildError, match="the gap must not be negative"):
        to_us(-SECOND, "the gap", positive=False)


def test_zero_is_refused_only_where_it_must_be_positive() -> None:
    with pytest.raises(BuildError, match="the gap must be longer than zero"):
        to_us(timedelta(0), "the gap")
    assert to_us(timedelta(0), "the gap", positive=False) == 0


def test_epochs_have_no_interval_unless_asked() -> None:
    assert Epochs().min_interval_us == 0
    assert Epochs(min_interval=SECOND).min_interval_us == 1_000_000


@pytest.mark.parametrize("name", ["rows", "max_rows", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many"])
def test_epochs_refuse_what_is_no_count(name: str, value: Any) -> None:
    with pytest.raises(BuildError, match=name):
        Epochs(**{name: value})


def test_epochs_refuse_a_negative_interval() -> None:
    with pytest.raises(BuildError, match="min_interval"):
        Epochs(min_interval=-SECOND)


def test_exponential_pauses_grow_to_their_maximum() -> None:
    restart = Restart.exponential(initial=SECOND, maximum=timedelta(seconds=10), factor=3)
    pauses = [restart.delay(failures, 0) for failures in (1, 2, 3, 4, 100_000)]
    assert pauses == [timedelta(seconds=s) for s in (1, 3, 9, 10, 10)]


def test_exponential_gives_up_on_user_code_only() -> None:
    restart = Restart.exponential(user_failures=2)
    assert restart.delay(50, 2) is not None
    assert restart.delay(3, 3) is None


def test_fixed_gives_up_after_its_attempts() -> None:
    restart = Restart.fixed(SECOND, 2)
    assert [restart.delay(failures, failures) for failures in (1, 2, 3)] == [SECOND, SECOND, None]


def test_never_gives_up_at_once() -> None:
    assert Restart.never().delay(1, 0) is None


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"initial": timedelta(0)}, "initial"),
        ({"initial": timedelta(hours=1)}, "maximum"),
        ({"factor": 0.5}, "factor"),
        ({"factor": float("nan")}, "factor"),
        ({"user_failures": -1}, "user_failures"),
        ({"reset_after": 5}, "reset_after"),
    ],
)
def test_exponential_refuses_settings_that_cannot_work(options: dict[str, Any], name: str) -> None:
    with pytest.raises(BuildError, match=name):
        Restart.exponential(**options)
