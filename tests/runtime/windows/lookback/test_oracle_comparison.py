"""Random streams: look-backs say what the oracle says, however they are sharded, restored or replayed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace import aggregates as agg
from headrace._graph.nodes import LookBackAggregate
from headrace._runtime import pending
from headrace._runtime.windows.lookback import expansion, view
from headrace._runtime.windows.lookback.history import History
from headrace._runtime.windows.lookback.ranges import Ranges
from headrace.errors import EngineError
from headrace.testing.epochs import StepEpoch
from headrace.windows import LookBack
from tests.examples import examples
from tests.runtime.windows.cases import compare, disturbances, step_node, streams
from tests.runtime.windows.each_aggregate import EACH

SIMPLE = {"rows": agg.count(), "total": agg.sum("number"), "newest": agg.last("text")}
MANY = examples(20)
SOME = examples(10)

sizes = st.sampled_from([1, 2, 3, 7, 8, 9, 20, 100])


def node(size_us: int, aggregates: Any = SIMPLE, **more: Any) -> LookBackAggregate:
    window = LookBack(timedelta(microseconds=size_us))
    return step_node(LookBackAggregate, window, aggregates, **more)


@MANY
@given(streams(few_keys=True), sizes, disturbances())
def test_any_size(epochs: Any, size_us: int, how: Any) -> None:
    compare(node(size_us), epochs, **how)


@SOME
@given(streams(few_keys=True), sizes, disturbances())
def test_each_aggregate(epochs: Any, size_us: int, how: Any) -> None:
    compare(node(size_us, EACH), epochs, **how)


@SOME
@given(streams(), sizes, disturbances())
def test_little_at_a_time(epochs: Any, size_us: int, how: Any) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(view, "LOOKED_AT", 3)
        patched.setattr(expansion, "EXPANDED_ROWS", 5)
        patched.setattr(pending, "PIECE_ROWS", 2)
        compare(node(size_us, EACH), epochs, **how)


@SOME
@given(streams(), sizes, disturbances())
def test_keys_of_two_columns(epochs: Any, size_us: int, how: Any) -> None:
    filled = [
        epoch._replace(
            rows=[(t, r) for t, r in epoch.rows if r["at"]],
            early=[(t, r) for t, r in epoch.early if r["at"]],
        )
        for epoch in epochs
    ]
    compare(node(size_us, keys=("at", "key")), filled, **how)


@SOME
@given(streams(few_keys=True), sizes, disturbances())
def test_times_that_are_far_apart(epochs: Any, size_us: int, how: Any) -> None:
    far = [_stretched(epoch, 10**15) for epoch in epochs]
    compare(node(size_us * 10**15), far, **how)


def _stretched(epoch: StepEpoch, by: int) -> StepEpoch:
    def times(us: int) -> int:
        return us * by if abs(us) < 1_000 else us

    return epoch._replace(
        before=times(epoch.before),
        watermark=times(epoch.watermark),
        rows=[(times(t), r) for t, r in epoch.rows],
        early=[(times(t), r) for t, r in epoch.early],
    )


def _short(self: Any, watermark: int) -> int:
    return int((watermark + 2 - self._size_us) // self._slice_us)


def _exclusive(self: Any, starts: Any, ends: Any) -> None:
    _INIT(self, starts, ends - (ends - starts > 1))


_INIT = Ranges.__init__


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [(History, "first_needed", _short), (Ranges, "__init__", _exclusive)],
    ids=["dropped one microsecond early", "without the last peer"],
)
def test_a_small_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, bug: Any
) -> None:
    monkeypatch.setattr(where, name, bug)

    # Without shrinking: that a counterexample exists is the fact.
    @settings(
        max_examples=300,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(streams(few_keys=True), sizes)
    def search(epochs: Any, size_us: int) -> None:
        compare(node(size_us), epochs)

    with pytest.raises((AssertionError, EngineError)):
        search()
