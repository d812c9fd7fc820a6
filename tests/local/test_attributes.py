"""Attributes of functions are gone with the process, in a local run too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local


@dataclass
class Seen:
    n: int


class Remembers(hr.KeyedProcessFunction):
    """Counts where it should not."""

    calls = 0

    def process_element(self, value: Any, ctx: Any) -> Iterator[Seen]:
        self.calls += 1
        yield Seen(self.calls)


def job() -> tuple[hr.Environment, MemorySink]:
    env, sink = hr.Environment("attributes", epochs=hr.Epochs(rows=1)), MemorySink()
    rows = env.from_source(MemorySource([{"k": 1}] * 3, {"k": int}), uid="rows")
    rows.key_by("k").process(Remembers(), uid="step").sink_to(sink, uid="out")
    return env, sink


def numbers(sink: MemorySink) -> list[int]:
    return [row["n"] for row in sink.to_pylist()]


def test_a_second_run_does_not_find_the_attributes_of_the_first() -> None:
    env, sink = job()
    run_local(env)
    first = numbers(sink)
    run_local(env)
    assert first == [1, 2, 3]
    assert numbers(sink)[-3:] == [1, 2, 3]


def test_a_crash_takes_attributes_away() -> None:
    env, sink = job()
    run_local(env, crashes=[(2, "task")])
    assert numbers(sink) == [1, 2, 1]
