"""What a function changes after it has given it out is as it was given out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import headrace as hr
from headrace._runtime.detached import detached
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local

SIDE = hr.OutputTag("side", {"n": int})


@dataclass
class Count:
    n: int


@dataclass(slots=True)
class Slotted:
    n: int


@dataclass(frozen=True)
class Frozen:
    n: int


def counts(result: Any, put: Callable[[Any, int], None]) -> Iterator[Any]:
    for n in range(3):
        put(result, n)
        yield result


def set_field(result: Any, n: int) -> None:
    result.n = n


def set_item(result: Any, n: int) -> None:
    result["n"] = n


CASES = [(Count, set_field), (Slotted, set_field), (dict, set_item)]


@pytest.mark.parametrize(("kind", "put"), CASES)
@pytest.mark.parametrize("step", ["keyed", "row", "flat_map", "side"])
def test_an_object_that_is_changed_and_yielded_again_is_as_many_results(
    kind: Any, put: Any, step: str
) -> None:
    def process(value: Any, ctx: Any) -> Iterator[Any]:
        for result in counts(kind(n=0), put):
            yield (SIDE, result) if step == "side" else result

    env, sink = hr.Environment("again"), MemorySink()
    rows: Any = env.from_source(MemorySource([{"n": 7}], {"n": int}), uid="rows")
    if step == "flat_map":
        made = rows.flat_map(lambda _: counts(kind(n=0), put), schema={"n": int}, uid="step")
    else:
        stream = rows if step == "row" else rows.key_by("n")
        made = stream.process(process, schema={"n": int}, side_outputs=[SIDE], uid="step")
    (made.side_output(SIDE) if step == "side" else made).sink_to(sink, uid="out")
    run_local(env)
    assert [row["n"] for row in sink.to_pylist()] == [0, 1, 2]


@pytest.mark.parametrize("step", ["map", "map_async"])
def test_an_object_that_is_kept_for_all_rows_is_a_result_for_each(step: str) -> None:
    kept = Count(0)

    def fill(row: Any) -> Any:
        kept.n = row.n
        return kept

    async def fill_async(row: Any) -> Any:
        return fill(row)

    env, sink = hr.Environment("kept"), MemorySink()
    rows = env.from_source(MemorySource([{"n": n} for n in range(3)], {"n": int}), uid="rows")
    if step == "map":
        made = rows.map(fill, schema={"n": int}, uid="step")
    else:
        made = rows.map_async(fill_async, schema={"n": int}, uid="step")
    made.sink_to(sink, uid="out")
    run_local(env)
    assert [row["n"] for row in sink.to_pylist()] == [0, 1, 2]


def test_what_cannot_be_changed_is_not_copied() -> None:
    for result in (Frozen(1), 5, "text", ("a", 1)):
        assert detached(result) is result
