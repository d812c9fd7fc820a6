"""Look-up joins of which a call fails, or a row does not fit."""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from headrace._graph.nodes import ERRORS, MAIN
from headrace.errors import EngineError, UserCodeError
from tests.runtime.joins.lookup_steps import (
    NAMED,
    ROW,
    Customer,
    Customers,
    column,
    orders,
    outputs,
    step,
)


class TestFailures:
    def test_a_call_that_fails_names_step_key_and_row(self) -> None:
        table = Customers(bad={9: ValueError("no such")})
        with pytest.raises(UserCodeError) as told:
            outputs(step(table), orders(7, 9, 8))
        for part in ("step 'it' raised ValueError: no such", "key 7", "offset 100", "2 other keys"):
            assert part in str(told.value)

    def test_errors_of_our_own_pass_as_they_are(self) -> None:
        with pytest.raises(EngineError, match="away"):
            outputs(step(Customers(bad={9: EngineError("away")})), orders(9))

    def test_one_bad_key_does_not_fail_the_others(self) -> None:
        table = Customers(bad={40: ValueError("no such")})
        found = outputs(step(table, on_error="dead_letter"), orders(*range(64), 40, 1))
        assert column(found[ERRORS], "offset") == [140, 164]
        assert set(column(found[ERRORS], "cause")) == {"ValueError: no such"}
        assert "in fetch" in column(found[ERRORS], "traceback")[0]
        assert column(found[MAIN], "name") == [f"c{n}" for n in [*range(40), *range(41, 64), 1]]
        assert len(table.calls) == 1 + 2 * 6, "halves, and not one by one"

    def test_the_same_of_a_plain_function(self) -> None:
        calls = []

        def find(keys: list[int]) -> dict[int, Customer]:
            calls.append(keys)
            return {key: Customer("x", 12 // (key - 40)) for key in keys}

        found = outputs(step(find, on_error="dead_letter"), orders(*range(64), 40))
        assert column(found[ERRORS], "offset") == [140, 164]
        assert len(found[MAIN]) == 63
        assert len(calls) == 1 + 2 * 6
        with pytest.raises(UserCodeError, match="ZeroDivisionError"):
            outputs(step(find), orders(40))

    def test_a_system_that_is_away_is_not_asked_key_by_key(self) -> None:
        table = Customers(bad={40: ConnectionRefusedError("away")})
        found = outputs(step(table, on_error="dead_letter"), orders(*range(64)))
        assert (len(found[ERRORS]), len(table.calls)) == (64, 1)
        assert MAIN not in found

    def test_a_call_may_take_no_longer_than_its_limit(self) -> None:
        class Slow(Customers):
            async def fetch(self, keys: Sequence[int]) -> Mapping[int, Any]:
                await asyncio.sleep(60)
                return {}

        operator = step(Slow(), on_error="dead_letter")
        object.__setattr__(operator._node, "limit_us", 20_000)
        assert "TimeoutError" in column(outputs(operator, orders(7))[ERRORS], "cause")[0]

    @pytest.mark.parametrize(
        ("row", "part"),
        [
            ({"name": "x"}, "the field 'level' (int64) is missing"),
            ({"name": "x", "level": "much"}, "'level' must be int64"),
            ({"name": "x", "level": 1, "more": 2}, "the field 'more'"),
            (5, "it returned 5 (int)"),
        ],
    )
    def test_a_row_that_does_not_fit_names_step_key_and_field(self, row: Any, part: str) -> None:
        def find(keys: list[int]) -> dict[int, Any]:
            return {key: row if key == 9 else Customer("x", 1) for key in keys}

        with pytest.raises(UserCodeError) as told:
            outputs(step(find, schema=NAMED), orders(7, 9, 8))
        for text in (part, "step 'it'", "key 9", "offset 101"):
            assert text in str(told.value)
        found = outputs(step(find, schema=NAMED, on_error="dead_letter"), orders(7, 9, 8, 9))
        assert column(found[ERRORS], "offset") == [101, 103]
        assert part in column(found[ERRORS], "cause")[0]
        assert column(found[MAIN], "customer") == [7, 8]

    def test_what_is_no_mapping_is_told(self) -> None:
        def find(keys: list[int]) -> Any:
            return keys

        with pytest.raises(
            UserCodeError, match=r"Step '.*': find must return a mapping of keys to rows"
        ):
            outputs(step(find, schema=NAMED), orders(7))

    def test_rows_may_be_objects_of_several_kinds(self) -> None:
        def find(keys: list[int]) -> dict[int, Any]:
            kinds = [
                Customer("a", 1),
                {"name": "b", "level": 2},
                MappingProxyType({"name": "c", "level": 3}),
            ]
            return dict(zip(keys, [*kinds, ROW("d", 4)], strict=True))

        found = outputs(step(find, schema=NAMED), orders(5, 6, 7, 8))[MAIN]
        assert column(found, "level") == [1, 2, 3, 4]
