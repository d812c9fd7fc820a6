"""Cumulating windows: what a firing reads, where rows go that come for a window that is over."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import aggregates as agg
from headrace._runtime import registry
from headrace._runtime.state import MemoryArrays, ShardState
from headrace._runtime.windows.panes import operator
from headrace._runtime.windows.panes.layout import PANES, RUNNING
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.runtime.windows.cases import row, window_node

COUNT = {"rows": agg.count()}
#: [0, 2), [0, 4), ... [0, 10)
DAY = Window(10, 2, 0, None, True)


def fired(rows: list[dict[str, Any]]) -> list[tuple[int, str, int, int]]:
    return sorted((r["window_end"].microsecond, r["pane"], r["firing"], r["rows"]) for r in rows)


def buckets(harness: StepHarness) -> tuple[list[int], list[int]]:
    node = harness.node
    state = ShardState(registry.tables(node), harness.stores[0], MemoryArrays(), range(128))
    state.open()
    return state.buckets(PANES), state.buckets(RUNNING)


def test_the_total_so_far_fires_at_every_step_and_starts_anew_with_the_day() -> None:
    harness = StepHarness(window_node(DAY, 0, COUNT))
    rows = [(1, row("a")), (5, row("a")), (9, row("a")), (10, row("a"))]
    results = harness.run(
        [StepEpoch(NO_WATERMARK, 0, rows), StepEpoch(0, 9), StepEpoch(9, END_OF_TIME)]
    )["main"]
    today = [r for r in results if r["window_start"].microsecond == 0]
    assert fired(today) == [
        (end, "on_time", 0, n) for end, n in zip((2, 4, 6, 8, 10), (1, 1, 2, 2, 3), strict=True)
    ]
    assert fired([r for r in results if r not in today]) == [
        (end, "on_time", 0, 1) for end in (12, 14, 16, 18, 20)
    ]


def test_panes_that_are_done_with_become_one_table() -> None:
    harness = StepHarness(window_node(DAY, 0, COUNT))
    harness.run([StepEpoch(NO_WATERMARK, -1, [(t, row("a")) for t in range(10)])])
    assert buckets(harness) == ([2, 4, 6, 8], [0])
    harness.run([StepEpoch(-1, 5)])
    assert buckets(harness) == ([8], [0])
    harness.run([StepEpoch(5, 9)])
    assert buckets(harness) == ([], [])


def test_with_lateness_panes_stay_as_long_as_their_windows_may_change() -> None:
    harness = StepHarness(window_node(DAY, 3, COUNT))
    harness.run([StepEpoch(NO_WATERMARK, 3, [(t, row("a")) for t in range(10)])])
    # [0, 2) is over at W = 1 + 3, [0, 4) at W = 6.
    assert buckets(harness) == ([2, 4, 6, 8], [0])
    harness.run([StepEpoch(3, 5)])
    assert buckets(harness) == ([4, 6, 8], [0])
    harness.run([StepEpoch(5, 6)])
    assert buckets(harness) == ([6, 8], [0])


@pytest.mark.parametrize(("lateness_us", "tables"), [(0, 1), (4, 2)])
def test_a_firing_reads_what_is_not_yet_one_table(
    lateness_us: int, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = StepHarness(window_node(Window(100, 2, 0, None, True), lateness_us, COUNT))
    harness.run([StepEpoch(NO_WATERMARK, 95, [(t, row("a")) for t in range(97)])])
    harness.run([StepEpoch(95, 95, [(96, row("a"))])])
    seen: list[int] = []
    real = operator.read_all

    def spy(folds: Any, read: Any) -> Any:
        seen.append(len(read))
        return real(folds, read)

    monkeypatch.setattr(operator, "read_all", spy)
    harness.run([StepEpoch(95, 97)])
    assert seen == [tables]


def test_a_row_for_small_windows_that_are_over_counts_in_the_bigger_ones() -> None:
    harness = StepHarness(window_node(DAY, 0, COUNT))
    harness.run([StepEpoch(NO_WATERMARK, 5, [(1, row("a"))])])
    results = harness.run([StepEpoch(5, 5, [(1, row("a")), (0, row("b"))]), StepEpoch(5, 7)])
    assert not results["late"]
    assert fired(results["main"]) == [(8, "on_time", 0, 1), (8, "on_time", 0, 2)]


def test_a_late_row_fires_the_windows_again_that_have_fired_and_are_not_over() -> None:
    harness = StepHarness(window_node(DAY, 3, COUNT))
    rows = [(1, row("a")), (3, row("b"))]
    harness.run([StepEpoch(NO_WATERMARK, -1, rows), StepEpoch(-1, 7)])
    # Over at W = 7: [0, 2) and [0, 4). Fired: up to [0, 8).
    again = harness.run([StepEpoch(7, 7, [(1, row("a"))])])["main"]
    assert fired(again) == [(6, "late", 1, 2), (8, "late", 1, 2)]
    assert {r["key"] for r in again} == {"a"}


def test_a_row_is_late_when_its_day_is_over() -> None:
    harness = StepHarness(window_node(DAY, 3, COUNT))
    assert not harness.run([StepEpoch(11, 11, [(1, row("a"))])])["late"]
    assert harness.run([StepEpoch(11, 12, [(9, row("a")), (10, row("a"))])])["late"] == [row("a")]
