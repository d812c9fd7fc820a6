"""A user's own aggregate: its accumulators survive as typed values, its errors name the step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from headrace.aggregates import as_aggregate
from headrace.errors import UserCodeError
from headrace.functions import AggregateFunction
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.runtime.contract import assert_same
from tests.runtime.windows.cases import answer, row, window_node


@dataclass
class Seen:
    word: str
    times: int = 0


@dataclass
class Tally:
    seen: dict[str, Seen] = field(default_factory=dict)
    longest: str | None = None


class Words(AggregateFunction):
    def create_accumulator(self) -> Tally:
        return Tally()

    def add(self, value: Any, accumulator: Tally) -> Tally:
        seen = accumulator.seen.setdefault(value.text, Seen(value.text))
        seen.times += value.number
        accumulator.longest = max(accumulator.longest or "", value.text, key=len)
        return accumulator

    def get_result(self, accumulator: Tally) -> list[str]:
        counts = sorted(accumulator.seen.values(), key=lambda seen: seen.word)
        return [f"{seen.word}={seen.times}" for seen in counts] + [accumulator.longest or "-"]

    def merge(self, a: Tally, b: Tally) -> Tally:
        for word, seen in b.seen.items():
            a.seen.setdefault(word, Seen(word)).times += seen.times
        a.longest = max(a.longest or "", b.longest or "", key=len)
        return a


class Broken(Words):
    def __init__(self, method: str) -> None:
        self.method = method

    def add(self, value: Any, accumulator: Tally) -> Tally:
        if self.method == "add" and value.text == "bad":
            raise ValueError("no such word")
        return super().add(value, accumulator)

    def merge(self, a: Tally, b: Tally) -> Tally:
        raise LookupError("cannot merge")

    def get_result(self, accumulator: Tally) -> list[str]:
        return 7 if self.method == "type" else super().get_result(accumulator)  # type: ignore[return-value]


EPOCHS = [
    StepEpoch(NO_WATERMARK, 0, [(1, row("a", text="x")), (5, row("a", text="yy"))]),
    StepEpoch(0, 1, [(2, row("a", 4, text="x")), (5, row("b", 2, text="z"))]),
    StepEpoch(1, 7, [(3, row("a", 1, text="late"))]),
    StepEpoch(7, END_OF_TIME),
]


@pytest.mark.parametrize("window", [Window(4, 4), Window(6, 2)], ids=["tumbling", "hopping"])
@pytest.mark.parametrize("restores", [{}, {1: 1, 2: 2, 3: 1}], ids=["kept", "restored"])
def test_accumulators_are_rebuilt_as_their_class(window: Window, restores: dict[int, int]) -> None:
    node = window_node(window, 5, {"words": as_aggregate(Words, "words")})
    found = StepHarness(node, 2).run(EPOCHS, restores=restores)
    assert_same(found, answer(node, EPOCHS))


@pytest.mark.parametrize(
    ("method", "message"),
    [("add", "no such word"), ("merge", "cannot merge"), ("type", "get_result")],
)
def test_an_error_names_the_step(method: str, message: str) -> None:
    node = window_node(Window(4, 4), 0, {"words": as_aggregate(Broken(method), "words")})
    bad = StepEpoch(NO_WATERMARK, 0, [(1, row("a", text="x")), (1, row("a", text="bad"))])
    merged = [bad, bad._replace(before=0)] if method == "merge" else [bad]
    with pytest.raises(UserCodeError, match=f"(?s)'per-key'.*{message}"):
        StepHarness(node).run([*merged, StepEpoch(0, END_OF_TIME)])
