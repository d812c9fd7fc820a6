"""What a function keeps of a call when the call is over, and what it changes after it has given it out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError
from headrace.testing import run_local


def run(function: Any, schema: Any) -> list[dict[str, Any]]:
    """The results of a function on three rows."""
    env, out = hr.Environment("kept"), MemorySink()
    rows = [{"key": 1, "number": number} for number in range(3)]
    stream = env.from_source(MemorySource(rows, schema={"key": int, "number": int}), uid="rows")
    stream.key_by("key").process(function, schema=schema, uid="step").sink_to(out, uid="out")
    run_local(env, shards=1)
    return out.to_pylist()


def test_a_list_in_a_result_is_what_it_was_when_it_was_yielded() -> None:
    class Grows(hr.KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            items: list[int] = []
            for number in range(3):
                items.append(number)
                yield {"key": ctx.key, "items": items}

    found = run(Grows(), {"key": int, "items": list[int]})
    assert [row["items"] for row in found[:3]] == [[0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize("asks", ["key", "timers", "state"])
def test_a_context_that_outlives_its_call_refuses(asks: str) -> None:
    kept: list[Any] = []

    class Keeps(hr.KeyedProcessFunction):
        n: hr.state.Value[int] = hr.state.FOREVER

        def process_element(self, value: Any, ctx: Any) -> None:
            self.n.update(1)
            kept[:] = [self, ctx]

    run(Keeps(), {"key": int})
    function, ctx = kept
    asking = {
        "key": lambda: ctx.key,
        "timers": lambda: ctx.timers.register_event_time(ctx.clock.replace(year=2200)),
        "state": lambda: function.n.update(2),
    }
    with pytest.raises(UserCodeError, match="outlives it"):
        asking[asks]()


def test_a_result_that_does_not_fit_names_step_key_and_row() -> None:
    class Wrong(hr.KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield {"key": ctx.key, "number": "two" if value.number == 2 else value.number}

    with pytest.raises(UserCodeError, match=r"(?s)step 'step'.*'number' must be int64.*key 1.*two"):
        run(Wrong(), {"key": int, "number": int})


def test_state_that_does_not_fit_names_step_key_and_row() -> None:
    class Wrong(hr.KeyedProcessFunction):
        n: hr.state.Value[int] = hr.state.FOREVER

        def process_element(self, value: Any, ctx: Any) -> None:
            self.n.update("x" if value.number == 2 else 0)  # type: ignore[arg-type]

    with pytest.raises(UserCodeError, match=r"(?s)'n' of step 'step'.*key 1.*number=2"):
        run(Wrong(), {"key": int})
