"""Random streams: versioned and as-of joins say what the oracle says, however they are sharded, restored or replayed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace._runtime import pending
from headrace._runtime.joins import slices
from headrace._runtime.joins.asof import latest, operator, partners, rights
from headrace.errors import EngineError
from tests.examples import examples
from tests.runtime.joins.asof.cases import ON, compare, step, streams
from tests.runtime.windows.cases import disturbances

MANY = examples(12)
SOME = examples(12)

hows = st.sampled_from(["inner", "left"])
keys = st.sampled_from(sorted(ON))
tolerances = st.sampled_from([0, 1, 2, 5, 9, 40])


@st.composite
def joins(draw: st.DrawFn) -> dict[str, Any]:
    """Any direction, with and without tolerance and exact matches."""
    direction = draw(st.sampled_from(["backward", "backward", "forward", "nearest"]))
    tolerance = draw(tolerances | st.none() if direction == "backward" else tolerances)
    exact = draw(st.booleans()) or tolerance == 0
    return {"direction": direction, "tolerance_us": tolerance, "exact": exact}


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "_LEAST_SLICE_US", 1)
    monkeypatch.setattr(slices, "_LEAST_US", 1)


@MANY
@given(streams(), hows, keys, disturbances())
def test_versioned(epochs: Any, how: Any, on: str, disturbed: Any) -> None:
    compare(step(how, on), epochs, **disturbed)


@MANY
@given(streams(changes=True), hows, disturbances())
def test_versions_that_end(epochs: Any, how: Any, disturbed: Any) -> None:
    compare(step(how, changes=True), epochs, **disturbed)


@MANY
@given(streams(), hows, keys, joins(), disturbances())
def test_any_direction(epochs: Any, how: Any, on: str, join: Any, disturbed: Any) -> None:
    compare(step(how, on, **join), epochs, **disturbed)


@MANY
@given(streams(changes=True), hows, joins(), disturbances())
def test_any_direction_with_changes(epochs: Any, how: Any, join: Any, disturbed: Any) -> None:
    compare(step(how, changes=True, **join), epochs, **disturbed)


@SOME
@given(streams(changes=True), hows, joins(), disturbances())
def test_little_at_a_time(epochs: Any, how: Any, join: Any, disturbed: Any) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(operator, "EMIT_ROWS", 2)
        patched.setattr(pending, "PIECE_ROWS", 2)
        compare(step(how, changes=True, **join), epochs, **disturbed)


@SOME
@given(streams(by=10**15), hows, joins(), disturbances())
def test_times_that_are_far_apart(epochs: Any, how: Any, join: Any, disturbed: Any) -> None:
    if join["tolerance_us"] is not None:
        join["tolerance_us"] *= 10**15
    with pytest.MonkeyPatch.context() as patched:
        # As with more keys than the tests have: neither fits into a word with them.
        patched.setattr(partners, "_WORD_BITS", 50)
        compare(step(how, "two", **join), epochs, **disturbed)


def _early(self: Any, watermark: int) -> int:
    return int(_useless_before(self, watermark)) + 1


def _first(rows: Any) -> Any:
    words, _, bits = partners._words(rows, rows)
    return np.unique(words >> bits, return_index=True)[1]


_useless_before = rights.Stretches.useless_before


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [(rights.Stretches, "useless_before", _early), (latest, "latest_of_each", _first)],
    ids=["dropped one microsecond early", "the first version is kept"],
)
def test_a_small_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, bug: Any
) -> None:
    monkeypatch.setattr(where, name, bug)

    # Without shrinking: that a counterexample exists is the fact.
    @settings(
        max_examples=500,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(streams(), joins())
    def search(epochs: Any, join: Any) -> None:
        compare(step("inner", **join), epochs)

    with pytest.raises((AssertionError, EngineError)):
        search()
