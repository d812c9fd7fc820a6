"""Random streams: the join says what its oracle says, however it is sharded, restored or replayed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headrace._runtime.joins.window import feeder, operator
from headrace._runtime.joins.window.meeting import Meeting
from headrace.errors import EngineError
from headrace.testing.epochs import StepEpoch
from headrace.windows import Window
from tests.examples import examples
from tests.runtime.joins.window.cases import (
    HOWS,
    all_keys,
    compare,
    join_node,
    lateness,
    streams,
    windows,
)
from tests.runtime.windows.cases import disturbances

hows = st.sampled_from(HOWS)


@examples(36)
@given(streams(), windows, hows, lateness, all_keys)
def test_any_stream(
    epochs: list[StepEpoch], window: Window, how: str, lateness_us: int, keys: Any
) -> None:
    compare(join_node(window, how, lateness_us, keys), epochs)


@examples(30)
@given(streams(), windows, hows, lateness, all_keys, disturbances())
def test_shards_batches_restores_and_replays(
    epochs: list[StepEpoch], window: Window, how: str, lateness_us: int, keys: Any, run: Any
) -> None:
    compare(join_node(window, how, lateness_us, keys), epochs, **run)


_JUDGE = operator.WindowJoinOperator._judge


def _over_early(self: Any, watermark: int) -> None:
    _JUDGE(self, watermark)
    self._over += 1


def _fires_late(self: Any, watermark: int) -> None:
    _JUDGE(self, watermark)
    self._passed -= 1


def _never_withdraws(self: Any, side: int) -> Any:
    return self.alone(side)[:0]


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [
        (operator.WindowJoinOperator, "_judge", _over_early),
        (operator.WindowJoinOperator, "_judge", _fires_late),
        (Meeting, "no_longer_alone", _never_withdraws),
        (feeder, "LATE_RIGHT", "late"),
    ],
    ids=["over too early", "fired too late", "not withdrawn", "late rows of the right on the left"],
)
def test_a_planted_bug_is_found(
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
    @given(streams(), windows, hows, st.sampled_from([1, 3, 12]))
    def search(epochs: list[StepEpoch], window: Window, how: str, lateness_us: int) -> None:
        compare(join_node(window, how, lateness_us), epochs)

    # A wrong answer, columns of the other side, or state that refuses a pane it was told to forget.
    with pytest.raises((AssertionError, EngineError, KeyError)):
        search()
