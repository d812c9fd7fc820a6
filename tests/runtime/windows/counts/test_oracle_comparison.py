"""Random streams: count windows say what the oracle says, however they are sharded, restored or replayed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import aggregates as agg
from headrace._graph.nodes import CountAggregate
from headrace._runtime.windows.counts import sliding
from headrace.windows import Count
from tests.examples import examples
from tests.runtime.windows.cases import compare, disturbances, step_node, streams
from tests.runtime.windows.each_aggregate import EACH

windows = st.builds(
    lambda size, slide: Count(size, slide and min(size, slide)),
    st.integers(1, 9),
    st.none() | st.integers(1, 9),
)


@examples(9)
@given(streams(few_keys=True), windows, disturbances())
def test_any_count(epochs: Any, window: Count, how: Any) -> None:
    aggregates = {"rows": agg.count(), "all": agg.collect("number"), "words": EACH["distinct_text"]}
    compare(step_node(CountAggregate, window, aggregates), epochs, **how)


@pytest.mark.parametrize("window", [Count(3), Count(4, 4), Count(4, 2), Count(5, 2)], ids=str)
@examples(9)
@given(epochs=streams(few_keys=True), how=disturbances())
def test_each_aggregate(window: Count, epochs: Any, how: Any) -> None:
    compare(step_node(CountAggregate, window, EACH), epochs, **how)


@examples(9)
@given(streams(), windows, disturbances())
def test_few_keys_at_a_time(epochs: Any, window: Count, how: Any) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sliding, "SCRATCH_PANES", 3)
        compare(step_node(CountAggregate, window, EACH), epochs, **how)


@examples(10)
@given(epochs=streams(), window=windows, how=disturbances())
def test_keys_of_two_columns(epochs: Any, window: Count, how: Any) -> None:
    filled = [
        epoch._replace(rows=[(t, r) for t, r in epoch.rows if r["at"]], early=())
        for epoch in epochs
    ]
    filled[-1] = filled[-1]._replace(early=())
    node = step_node(CountAggregate, window, {"sum": agg.sum("number")}, keys=("at", "key"))
    compare(node, filled, **how)
