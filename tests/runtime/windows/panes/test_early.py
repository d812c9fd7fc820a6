"""Early firings: when, for whom, with which number, and what is withdrawn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headrace import aggregates as agg
from headrace import triggers
from headrace._graph.nodes import WindowAggregate
from headrace._runtime import registry
from headrace._runtime.state import MemoryArrays, ShardState
from headrace._runtime.windows.panes import operator
from headrace._runtime.windows.panes.layout import DIRTY, SHOWN
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from headrace.watermarks import NO_WATERMARK
from headrace.windows import Window
from tests.runtime.contract import kept_rows
from tests.runtime.windows.cases import row, step_node

TOTAL = {"total": agg.sum("number")}


def harness(window: Window, time: Any = "processing", **said: Any) -> StepHarness:
    trigger = triggers.early(every=timedelta(microseconds=10), time=time)
    return StepHarness(step_node(WindowAggregate, window, TOTAL, trigger=trigger, **said))


def said(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(r[name] for name in names) for r in rows]


def test_only_what_changed_fires_and_only_at_multiples_of_the_clock() -> None:
    h = harness(Window(100, 100))
    rows = [(1, row("a", 3)), (2, row("b", 4))]
    assert not h.run([StepEpoch(NO_WATERMARK, 0, rows, (), 0, 5), StepEpoch(0, 0, (), (), 5, 9)])[
        "main"
    ]
    first = h.run([StepEpoch(0, 0, [(3, row("a", 5))], (), 9, 10)])["main"]
    assert sorted(said(first, "key", "pane", "firing", "total")) == [
        ("a", "early", 0, 3), ("b", "early", 0, 4),
    ]  # fmt: skip
    # The clock jumps over two multiples: one firing, and nothing of b.
    second = h.run([StepEpoch(0, 0, (), (), 10, 35)])["main"]
    assert said(second, "key", "pane", "firing", "total") == [("a", "early", 1, 8)]
    assert not h.run([StepEpoch(0, 0, (), (), 35, 50)])["main"]
    last = h.run([StepEpoch(0, 99, [], (), 50, 51)])["main"]
    assert sorted(said(last, "key", "pane", "firing", "total")) == [
        ("a", "on_time", 2, 8), ("b", "on_time", 1, 4),
    ]  # fmt: skip


def test_up_to_its_last_microsecond_a_window_fires_early() -> None:
    h = harness(Window(100, 100))
    h.run([StepEpoch(NO_WATERMARK, 98, [(1, row("a", 3))], (), 0, 5)])
    assert said(h.run([StepEpoch(98, 98, (), (), 5, 10)])["main"], "pane") == [("early",)]


def test_in_event_time_the_watermark_passes_multiples() -> None:
    h = harness(Window(100, 100), "event")
    h.run([StepEpoch(NO_WATERMARK, 9, [(1, row("a", 3))])])
    assert said(h.run([StepEpoch(9, 10)])["main"], "pane", "total") == [("early", 3)]
    assert not h.run([StepEpoch(10, 20)])["main"]


def test_a_key_fires_in_every_open_window_that_it_changed() -> None:
    h = harness(Window(40, 20))
    h.run([StepEpoch(NO_WATERMARK, 0, [(21, row("a", 3)), (45, row("a", 4))], (), 0, 5)])
    results = h.run([StepEpoch(0, 0, (), (), 5, 10)])["main"]
    assert sorted((r["window_end"].microsecond, r["total"]) for r in results) == [
        (40, 3), (60, 7), (80, 4),
    ]  # fmt: skip


def test_an_early_result_is_withdrawn_by_the_next_firing() -> None:
    h = harness(Window(100, 100), accumulation="retracting", lateness_us=50)
    columns = ("change", "pane", "firing", "total")
    h.run([StepEpoch(NO_WATERMARK, 0, [(1, row("a", 3))], (), 0, 5)])
    first = h.run([StepEpoch(0, 0, [(1, row("a", 4))], (), 5, 10)])["main"]
    assert said(first, *columns) == [("+I", "early", 0, 3)]
    second = h.run([StepEpoch(0, 0, (), (), 10, 20)])["main"]
    assert said(second, *columns) == [("-U", "early", 0, 3), ("+U", "early", 1, 7)]
    third = h.run([StepEpoch(0, 99, (), (), 20, 21)])["main"]
    assert said(third, *columns) == [("-U", "early", 1, 7), ("+U", "on_time", 2, 7)]
    fourth = h.run([StepEpoch(99, 99, [(2, row("a", 1)), (2, row("b", 1))], (), 21, 22)])["main"]
    assert sorted(said(fourth, "key", *columns)) == [
        ("a", "+U", "late", 3, 8), ("a", "-U", "on_time", 2, 7), ("b", "+I", "late", 1, 1),
    ]  # fmt: skip
    fifth = h.run([StepEpoch(99, 99, [(2, row("a", 1))], (), 22, 23)])["main"]
    assert said(fifth, *columns) == [("-U", "late", 3, 8), ("+U", "late", 4, 9)]


def test_a_result_without_a_value_is_withdrawn_as_it_was() -> None:
    h = harness(Window(100, 100), accumulation="retracting")
    h.run([StepEpoch(NO_WATERMARK, 0, [(1, row("a", None))], (), 0, 5)])
    h.run([StepEpoch(0, 0, [(1, row("a", 2))], (), 5, 10)])
    rows = h.run([StepEpoch(0, 0, (), (), 10, 20)])["main"]
    assert said(rows, "change", "total") == [("-U", None), ("+U", 2)]


def test_a_firing_that_discards_starts_from_nothing() -> None:
    h = harness(Window(100, 100), accumulation="discarding", lateness_us=50)
    h.run([StepEpoch(NO_WATERMARK, 0, [(1, row("a", 3))], (), 0, 5)])
    assert said(h.run([StepEpoch(0, 0, (), (), 5, 10)])["main"], "firing", "total") == [(0, 3)]
    assert kept_rows(h) == 1  # the number of firings
    h.run([StepEpoch(0, 0, [(1, row("a", 4))], (), 10, 11)])
    on_time = h.run([StepEpoch(0, 99, (), (), 11, 12)])["main"]
    assert said(on_time, "pane", "firing", "total") == [("on_time", 1, 4)]
    late = h.run([StepEpoch(99, 99, [(1, row("a", 5))], (), 12, 13)])["main"]
    assert said(late, "pane", "firing", "total") == [("late", 2, 5)]


def test_nothing_fires_on_time_that_a_discarding_firing_has_emptied() -> None:
    h = harness(Window(100, 100), accumulation="discarding")
    h.run([StepEpoch(NO_WATERMARK, 0, [(1, row("a", 3))], (), 0, 5)])
    assert h.run([StepEpoch(0, 0, (), (), 5, 10)])["main"]
    assert not h.run([StepEpoch(0, 99, (), (), 10, 11)])["main"]


def test_an_early_firing_reads_the_keys_that_changed_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    h = harness(Window(100, 50))
    h.run([StepEpoch(NO_WATERMARK, 0, [(60, row(f"k{n}")) for n in range(500)], (), 0, 5)])
    h.run([StepEpoch(0, 0, [(70, row("k7"))], (), 5, 10)])
    read: list[int] = []
    real = operator.read_some

    def spy(folds: Any, tables: Any, hashes: Any, keys: Any) -> Any:
        read.append(len(hashes))
        return real(folds, tables, hashes, keys)

    monkeypatch.setattr(operator, "read_some", spy)
    h.run([StepEpoch(0, 0, (), (), 10, 20)])
    assert read == [1, 1]


def test_what_waits_for_a_firing_goes_with_the_window() -> None:
    h = harness(Window(100, 100), accumulation="retracting", lateness_us=500)
    h.run([StepEpoch(NO_WATERMARK, 0, [(1, row("a"))], (), 0, 5)])
    h.run([StepEpoch(0, 0, [(1, row("a"))], (), 5, 10), StepEpoch(0, 99, (), (), 10, 11)])
    state = ShardState(registry.tables(h.node), h.stores[0], MemoryArrays(), range(128))
    state.open()
    assert state.buckets(DIRTY) == state.buckets(SHOWN) == []
