"""Behind the shuffle: when windows fire, fire again and go, one fact a test."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from headrace import aggregates as agg
from headrace import triggers
from headrace._graph.nodes import WindowAggregate
from headrace._runtime.windows.panes import firing, reading
from headrace._runtime.windows.panes.feeder import WindowFeeder
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness, timed_rows
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.runtime.contract import assert_same, kept_rows
from tests.runtime.windows.cases import SCHEMA, answer, row, step_node, window_node

COUNT = {"rows": agg.count()}
FIRST = StepEpoch(NO_WATERMARK, NO_WATERMARK, [(1, row("a")), (2, row("b")), (5, row("a"))])


def firings(rows: list[dict[str, Any]]) -> list[tuple[str, int, int, int]]:
    return sorted((r["key"], r["window_start"].microsecond, r["firing"], r["rows"]) for r in rows)


def test_a_window_fires_when_the_watermark_reaches_its_last_microsecond() -> None:
    harness = StepHarness(window_node(Window(4, 4), 0, COUNT))
    assert not harness.run([FIRST, StepEpoch(NO_WATERMARK, 2)])["main"]
    assert firings(harness.run([StepEpoch(2, 3)])["main"]) == [("a", 0, 0, 1), ("b", 0, 0, 1)]
    assert not harness.run([StepEpoch(3, 3)])["main"]


def test_a_late_row_fires_its_key_again_and_no_other() -> None:
    harness = StepHarness(window_node(Window(4, 4), 10, COUNT))
    harness.run([FIRST, StepEpoch(NO_WATERMARK, 3)])
    again = harness.run([StepEpoch(3, 3, [(0, row("a")), (3, row("a"))])])["main"]
    assert firings(again) == [("a", 0, 1, 3)]
    again = harness.run([StepEpoch(3, 4, [(0, row("a")), (0, row("new"))])])["main"]
    assert firings(again) == [("a", 0, 2, 4), ("new", 0, 1, 1)]


def test_a_last_firing_sees_no_row_that_is_too_late_for_it() -> None:
    # Window [0, 8) is over at W = 16. The early row at 5 changes it, the row at 6 comes behind the tick
    # and belongs to [4, 12) only; both lie in pane [4, 8).
    harness = StepHarness(window_node(Window(8, 4), 9, COUNT))
    harness.run([StepEpoch(NO_WATERMARK, 7)])
    rows = harness.run([StepEpoch(7, 16, [(6, row("a"))], [(5, row("a"))])])["main"]
    assert firings(rows) == [("a", 0, 1, 1), ("a", 4, 0, 1), ("a", 4, 1, 2)]


def test_state_goes_when_the_last_window_of_a_pane_is_over() -> None:
    harness = StepHarness(window_node(Window(4, 4), 2, COUNT | {"n": agg.count_distinct("number")}))
    harness.run([FIRST, StepEpoch(NO_WATERMARK, 4)])
    assert kept_rows(harness) == 6
    harness.run([StepEpoch(4, 5)])
    assert kept_rows(harness) == 2


def test_hopping_windows_of_one_key_overlap() -> None:
    harness = StepHarness(window_node(Window(4, 2), 0, COUNT))
    results = harness.run([FIRST, StepEpoch(NO_WATERMARK, END_OF_TIME)])["main"]
    assert [r["rows"] for r in results if r["key"] == "a"] == [1, 1, 1, 1]
    assert [r["window_end"].microsecond for r in results if r["key"] == "a"] == [2, 4, 6, 8]


def test_results_carry_the_last_microsecond_of_their_window() -> None:
    harness = StepHarness(window_node(Window(4, 4), 0, COUNT))
    harness.epoch(FIRST)
    seen: list[int] = []
    original = firing.Firing._rows

    def spy(self: Any, *arguments: Any) -> Any:
        rows = original(self, *arguments)
        seen.extend(np.unique(rows.timestamps).tolist())
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(firing.Firing, "_rows", spy)
        harness.epoch(StepEpoch(NO_WATERMARK, END_OF_TIME))
    assert seen == [3, 7]


@pytest.mark.parametrize("window", [Window(4, 4), Window(4, 2)], ids=["tumbling", "hopping"])
@pytest.mark.parametrize("trigger", [None, triggers.early(every=timedelta(microseconds=5))])
def test_large_results_come_in_pieces(
    monkeypatch: pytest.MonkeyPatch, window: Window, trigger: Any
) -> None:
    monkeypatch.setattr(reading, "EMIT_ROWS", 3)
    sizes: list[int] = []
    original = firing.Firing._rows

    def spy(self: Any, *arguments: Any) -> Any:
        rows = original(self, *arguments)
        sizes.append(len(rows))
        return rows

    monkeypatch.setattr(firing.Firing, "_rows", spy)
    node = step_node(WindowAggregate, window, COUNT, trigger=trigger)
    rows = [(t, row(f"k{k}")) for k in range(8) for t in (1, 3)]
    epochs = [
        StepEpoch(NO_WATERMARK, 0, rows, (), 0, 1),
        StepEpoch(0, 0, (), (), 1, 5),
        StepEpoch(0, END_OF_TIME, (), (), 5, 6),
    ]
    assert_same(StepHarness(node).run(epochs), answer(node, epochs))
    assert max(sizes) == 3


def test_late_rows_in_windows_of_their_own_touch_no_state() -> None:
    node = step_node(WindowAggregate, Window(4, 2), COUNT, on_late="own_window")
    harness = StepHarness(node)
    harness.run([StepEpoch(NO_WATERMARK, 20)])
    rows = [(5, row("a")), (6, row("a")), (5, row("b")), (30, row("a"))]
    results = harness.run([StepEpoch(20, 20, rows[:3])])["main"]
    assert {r["pane"] for r in results} == {"own"}
    assert firings(results) == [
        ("a", 2, 0, 1), ("a", 4, 0, 2), ("a", 6, 0, 1), ("b", 2, 0, 1), ("b", 4, 0, 1),
    ]  # fmt: skip
    assert harness.stores[0].manifest() is None
    # Another epoch has windows of its own, and rows in time are no part of them.
    results = harness.run([StepEpoch(20, 20, rows[:1] + rows[3:])])["main"]
    assert firings(results) == [("a", 2, 0, 1), ("a", 4, 0, 1)]


def test_windows_without_keys_cross_the_shuffle_as_one_row_a_task() -> None:
    node = step_node(WindowAggregate, Window(4, 4), COUNT, keys=())
    feeder = WindowFeeder(node)
    assert not list(feeder.feed(timed_rows(SCHEMA, [(1, row("a")), (2, row(None))]), NO_WATERMARK))
    (batch,) = feeder.flush()
    assert batch.num_rows == 1
    epochs = [StepEpoch(NO_WATERMARK, 0, [(t, row(None)) for t in range(8)])]
    results = StepHarness(node, 3, batch_rows=2).run([*epochs, StepEpoch(0, END_OF_TIME)])["main"]
    assert [r["rows"] for r in results] == [4, 4]
    assert list(results[0]) == ["window_start", "window_end", "pane", "firing", "rows"]
