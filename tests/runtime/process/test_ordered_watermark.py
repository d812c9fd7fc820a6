"""With `ordered` each call sees the watermark just before it: it never goes back, and no other key has a say in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.testing.epochs import StepEpoch
from headrace.watermarks import NO_WATERMARK
from tests.runtime.process.cases import compare, process_node
from tests.runtime.process.programs import Program


def row(at: int, *program: Any, key: str = "a") -> Any:
    return at, {"key": key, "n": at, "program": json.dumps(program)}


def test_timer_behind_its_row_does_not_take_the_watermark_back() -> None:
    rows = [row(5, ["timer", -3]), row(8, ["timer", 1]), row(9)]
    epochs = [StepEpoch(NO_WATERMARK, 0, rows), StepEpoch(0, 20)]
    compare(process_node(Program(()), ordered=True), epochs)


@pytest.mark.parametrize("shards", [1, 3])
def test_clock_timer_sees_the_watermark_whatever_other_keys_do(shards: int) -> None:
    rows = [
        row(5, ["clock_timer", 3]),
        row(8, ["timer", 9], key="b"),
        row(9, ["timer", 9], key="c"),
    ]
    epochs = [
        StepEpoch(NO_WATERMARK, 0, rows, clock_before=0, clock=10),
        StepEpoch(0, 10, clock_before=10, clock=12),
        StepEpoch(10, 20, clock_before=12, clock=20),
    ]
    compare(process_node(Program(()), ordered=True), epochs, shards=shards)
