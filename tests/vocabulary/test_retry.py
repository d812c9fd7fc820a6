from datetime import timedelta

import pytest

from headrace.config import Retry
from headrace.errors import BuildError

SECOND = timedelta(seconds=1)


def test_pauses_grow_up_to_the_maximum() -> None:
    retry = Retry(9, SECOND, backoff=3, maximum=10 * SECOND)
    assert [retry.pause_s(made) for made in (1, 2, 3, 4, 500)] == [1, 3, 9, 10, 10]


def test_without_jitter_chance_changes_nothing() -> None:
    assert {Retry(3, SECOND).pause_s(1, chance) for chance in (0.0, 0.3, 1.0)} == {1.0}


def test_jitter_moves_a_pause_both_ways() -> None:
    retry = Retry(3, SECOND, jitter=0.2)
    assert [retry.pause_s(1, chance) for chance in (0.0, 0.5, 1.0)] == pytest.approx([0.8, 1, 1.2])


def test_it_allows_so_many_calls_in_all_and_errors_of_its_classes() -> None:
    retry = Retry(3, retry_on=OSError)
    assert [retry.allows(TimeoutError(), made) for made in (1, 2, 3)] == [True, True, False]
    assert not retry.allows(ValueError(), 1)
    assert not Retry().allows(SystemExit(), 1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"attempts": 0}, "1 or more"),
        ({"delay": 1}, "timedelta"),
        ({"delay": SECOND, "maximum": SECOND / 2}, "shorter than delay"),
        ({"backoff": 0.5}, "backoff"),
        ({"jitter": 2}, "between 0 and 1"),
        ({"retry_on": ()}, "classes of exceptions"),
        ({"retry_on": (KeyboardInterrupt,)}, "classes of exceptions"),
        ({"retry_on": ("OSError",)}, "classes of exceptions"),
    ],
)
def test_nonsense_is_refused(options: dict, text: str) -> None:
    with pytest.raises(BuildError, match=text):
        Retry(**options)
