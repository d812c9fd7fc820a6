"""Random streams: the operator says what the oracle says, however it is sharded, restored or replayed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headrace import aggregates as agg
from headrace._runtime.windows.panes import feeder
from headrace._runtime.windows.panes.contents import Contents
from headrace._runtime.windows.panes.operator import WindowOperator
from headrace.errors import EngineError
from headrace.testing.epochs import StepEpoch
from headrace.windows import Window
from tests.examples import examples
from tests.runtime.windows.cases import compare, streams, window_node, windows

SIMPLE = {"rows": agg.count(), "total": agg.sum("number"), "highest": agg.max("number")}
EACH = {
    "count": agg.count("number"),
    "sum": agg.sum("number"),
    "min": agg.min("amount"),
    "max": agg.max("amount"),
    "min_text": agg.min("text"),
    "max_at": agg.max("at"),
    "avg": agg.avg("number"),
    "first": agg.first("text"),
    "last": agg.last("number"),
    "min_by": agg.min_by("text", "amount"),
    "max_by": agg.max_by("number", "text"),
    "max_by_itself": agg.max_by("number", "number"),
    "max_by_float": agg.max_by("at", "amount"),
    "distinct": agg.count_distinct("amount"),
    "distinct_text": agg.count_distinct("text"),
    "variance": agg.variance("number"),
    "stddev": agg.stddev("number", ddof=0),
    "collect": agg.collect("text"),
}


@examples(20)
@given(streams(), windows, st.integers(0, 12))
def test_windows_and_lateness(epochs: list[StepEpoch], window: Window, lateness_us: int) -> None:
    compare(window_node(window, lateness_us, SIMPLE), epochs)


@examples(15)
@given(streams(), windows, st.integers(0, 12), st.data())
def test_shards_batches_restores_and_replays(
    epochs: list[StepEpoch], window: Window, lateness_us: int, data: st.DataObject
) -> None:
    counts = st.integers(1, 3)
    numbers = st.integers(0, len(epochs) - 1)
    compare(
        window_node(window, lateness_us, SIMPLE | {"words": agg.count_distinct("text")}),
        epochs,
        shards=data.draw(counts),
        batch_rows=data.draw(st.integers(1, 12)),
        restores=data.draw(st.dictionaries(numbers, counts, max_size=2)),
        crashes=data.draw(st.lists(numbers, max_size=2)),
    )


@pytest.mark.parametrize("window", [Window(6, 6), Window(6, 2)], ids=["tumbling", "hopping"])
@examples(10)
@given(epochs=streams(), restores=st.dictionaries(st.integers(1, 3), st.integers(1, 3), max_size=1))
def test_each_aggregate(window: Window, epochs: list[StepEpoch], restores: dict[int, int]) -> None:
    compare(window_node(window, 5, EACH), epochs, shards=2, batch_rows=5, restores=restores)


@examples(10)
@given(epochs=streams(), window=windows)
def test_keys_of_two_columns(epochs: list[StepEpoch], window: Window) -> None:
    filled = [
        epoch._replace(rows=[(t, r) for t, r in epoch.rows if r["at"]], early=())
        for epoch in epochs
    ]
    compare(window_node(window, 3, SIMPLE, keys=("at", "key")), filled, shards=2)


_FIRST_OPEN, _ENDS, _JUDGE = feeder.first_open_pane, Contents.ends, WindowOperator._judge


def _late_early(node: Any, watermark: int) -> int:
    return _FIRST_OPEN(node, watermark + 1)


def _over_early(self: Any, watermark: int) -> None:
    _JUDGE(self, watermark)
    self._over += 1


def _fires_late(self: Any, after: int, until: int) -> list[int]:
    return _ENDS(self, after, until - 1)


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [
        (feeder, "first_open_pane", _late_early),
        (WindowOperator, "_judge", _over_early),
        (Contents, "ends", _fires_late),
    ],
    ids=["late one microsecond early", "dropped one microsecond early", "fired one late"],
)
def test_a_bug_of_one_microsecond_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, bug: Any
) -> None:
    monkeypatch.setattr(where, name, bug)

    # Without shrinking: that a counterexample exists is the fact.
    @settings(
        max_examples=200,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    @given(streams(), windows, st.integers(0, 12))
    def search(epochs: list[StepEpoch], window: Window, lateness_us: int) -> None:
        compare(window_node(window, lateness_us, SIMPLE), epochs)

    # A wrong answer, or state that refuses a pane it was told to forget.
    with pytest.raises((AssertionError, EngineError)):
        search()
