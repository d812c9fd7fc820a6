"""Rows that come before the tick, from a step that fired because of it, set and delete timers like others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.testing.epochs import StepEpoch
from headrace.watermarks import NO_WATERMARK
from tests.runtime.process.cases import compare, process_node
from tests.runtime.process.programs import Program


def row(*program: Any, at: int = 5) -> Any:
    return at, {"key": "a", "n": 1, "program": json.dumps(program)}


def two_epochs(first: Any, early: Any) -> list[StepEpoch]:
    """A row, and then an early one while the watermark goes from 4 to 20 and the clock from 100 to 110."""
    return [
        StepEpoch(NO_WATERMARK, 4, [first], (), NO_WATERMARK, 100),
        StepEpoch(4, 20, (), [early], 100, 110),
    ]


@pytest.mark.parametrize("by", [-3, 0, 5, 15, 16])
def test_timer_of_an_early_row_fires_once_time_has_come_to_it(by: int) -> None:
    compare(process_node(Program(())), two_epochs(row(), row(["timer", by])))


@pytest.mark.parametrize("by", [5, 15, 16])
def test_early_row_deletes_a_timer_that_is_due_in_the_same_epoch(by: int) -> None:
    compare(process_node(Program(())), two_epochs(row(["timer", by]), row(["delete", by])))


def test_timer_of_an_early_row_is_the_one_that_is_there() -> None:
    compare(process_node(Program(())), two_epochs(row(["timer", 5]), row(["timer", 5])))


@pytest.mark.parametrize("verb", ["clock_timer", "delete_clock"])
@pytest.mark.parametrize("by", [-10, -5, 0, 1])
def test_clock_timers_of_early_rows_are_one_with_those_that_are_due(verb: str, by: int) -> None:
    first, early = row(["clock_timer", by + 10]), row([verb, by])
    compare(process_node(Program(())), two_epochs(first, early))
