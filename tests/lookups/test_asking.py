"""Rows of many keys at once, with the failure of each key that has one."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from headrace.errors import EngineError
from headrace.lookups import Cache, LookupFunction
from headrace.lookups.asking import Answers, ask


class Doubles(LookupFunction[int, int]):
    """Fails for bad keys; knows no row of odd ones."""

    def __init__(self, bad: Mapping[int, Exception] | None = None, **options: Any) -> None:
        self.bad = bad or {}
        self.calls: list[list[int]] = []
        self.going, self.at_once = 0, [0]
        vars(self).update(options)

    async def fetch(self, keys: Sequence[int]) -> Mapping[int, int]:
        self.calls.append(list(keys))
        self.going += 1
        self.at_once[0] = max(self.at_once[0], self.going)
        await asyncio.sleep(0.001)
        self.going -= 1
        if found := [key for key in keys if key in self.bad]:
            raise self.bad[found[0]]
        return {key: 2 * key for key in keys if key % 2 == 0}


def asked(function: Doubles, keys: Sequence[int], **options: Any) -> Answers:
    return asyncio.run(ask(function, keys, **options))


def test_rows_come_by_key_and_calls_go_side_by_side() -> None:
    function = Doubles(batch_size=2)
    found = asked(function, [2, 3, 4, 5, 6])
    assert found.rows == {2: 4, 3: None, 4: 8, 5: None, 6: 12}
    assert function.calls == [[2, 3], [4, 5], [6]]


def test_calls_wait_for_their_turn_and_only_then_their_time_runs() -> None:
    function = Doubles(batch_size=1, concurrency=2)
    found = asked(function, range(40), limit_s=0.5)
    assert (len(found.rows), found.failures, function.at_once) == (40, {}, [2])


def test_a_call_that_takes_too_long_says_how_long_it_may() -> None:
    found = asked(Doubles(), [2], limit_s=0.0001)
    assert str(found.failures[2]) == "no answer within 0.0001 s (call_limit)"


def test_what_is_kept_is_not_asked_for() -> None:
    function = Doubles(cache=Cache())
    asked(function, [2, 3])
    assert asked(function, [3, 4, 2]).rows == {3: None, 4: 8, 2: 4}
    assert function.calls == [[2, 3], [4]]


def test_a_failure_is_that_of_all_keys_of_its_call() -> None:
    function = Doubles({3: ValueError("three")}, batch_size=2)
    found = asked(function, [2, 3, 4])
    assert found.rows == {4: 8}
    assert [(key, str(error)) for key, error in found.failures.items()] == [
        (2, "three"),
        (3, "three"),
    ]


@pytest.mark.parametrize("bad", [{3}, {0, 7}, set(range(8)), set()])
def test_apart_only_bad_keys_fail(bad: set[int]) -> None:
    function = Doubles({key: ValueError(str(key)) for key in bad}, cache=Cache())
    found = asked(function, range(8), apart=True)
    assert {key: str(error) for key, error in found.failures.items()} == {
        key: str(key) for key in bad
    }
    assert found.rows == {key: None if key % 2 else 2 * key for key in set(range(8)) - bad}
    assert function.going == 0
    assert len(function.calls) <= 1 + 2 * len(bad) * 3
    assert asked(function, sorted(found.rows), apart=True).rows == found.rows
    assert all(sum(key in call for call in function.calls) == 1 for key in set(range(8)) if not bad)


@pytest.mark.parametrize("error", [EngineError("away"), ConnectionResetError(), TimeoutError()])
def test_errors_of_the_system_are_not_taken_apart(error: Exception) -> None:
    function = Doubles({3: error})
    assert asked(function, range(8), apart=True).failures.keys() == set(range(8))
    assert len(function.calls) == 1


def test_a_call_that_takes_too_long_is_given_up() -> None:
    class Hangs(Doubles):
        async def fetch(self, keys: Sequence[int]) -> Mapping[int, int]:
            if 4 in keys:
                await asyncio.sleep(60)
            return await super().fetch(keys)

    found = asked(Hangs(batch_size=2), [2, 3, 4, 5], limit_s=0.5)
    assert found.rows == {2: 4, 3: None}
    assert {type(error) for error in found.failures.values()} == {TimeoutError}


def test_answers_are_never_shown_whole() -> None:
    assert len(repr(Answers(dict.fromkeys(range(1000))))) < 100
