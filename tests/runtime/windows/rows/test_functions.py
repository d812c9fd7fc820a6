"""Window functions: what they see, keep and yield is what the oracle says, also across restores and shards."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace import aggregates as agg
from headrace import evictors, triggers
from headrace._graph.nodes import LATE, MAIN, WindowProcess
from headrace.errors import UserCodeError
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Count, Global, Session, Window
from tests.examples import examples
from tests.runtime.contract import assert_same, kept_rows, sort
from tests.runtime.windows.cases import (
    answer,
    disturbances,
    lateness,
    policies,
    row,
    sessions,
    step_node,
    streams,
    windows,
)
from tests.runtime.windows.rows.written import Summary, Sums, Tells, process_node
from tests.runtime.windows.trigger_cases import any_evictor, any_trigger

SOME = examples(10)
ROWS = [(5, row("a", 1)), (7, row("a", 2)), (3, row("b", 3))]


def compare_all(node: WindowProcess, epochs: Any, **how: Any) -> None:
    """Side outputs too."""
    shards, rows = how.pop("shards", 1), how.pop("batch_rows", 1_000_000)
    found, expected = StepHarness(node, shards, rows).run(epochs, **how), answer(node, epochs)
    assert_same(found, expected)
    for side in ("big", "empty"):
        assert sort(found.get(side, [])) == sort(expected.get(side, [])), side


@SOME
@given(streams(few_keys=True), windows, lateness, any_trigger, policies, disturbances())
def test_functions_say_what_the_oracle_says(
    epochs: Any, window: Any, lateness_us: int, trigger: Any, on_late: Any, how: Any
) -> None:
    said = {"lateness_us": lateness_us, "trigger": trigger, "on_late": on_late}
    compare_all(process_node(Tells(), window, **said), epochs, **how)


@SOME
@given(streams(few_keys=True), sessions, lateness, any_trigger, disturbances())
def test_functions_on_sessions(
    epochs: Any, window: Any, lateness_us: int, trigger: Any, how: Any
) -> None:
    compare_all(
        process_node(Tells(), window, lateness_us=lateness_us, trigger=trigger), epochs, **how
    )


@SOME
@given(
    streams(few_keys=True), windows | sessions, lateness, st.none() | any_evictor, disturbances()
)
def test_functions_get_aggregates(
    epochs: Any, window: Any, lateness_us: int, evictor: Any, how: Any
) -> None:
    said = {"aggregates": {"rows": agg.count(), "total": agg.sum("number")}, "evictor": evictor}
    node = process_node(Sums(), window, Summary, lateness_us=lateness_us, **said)
    compare_all(node, epochs, **how)


def test_a_function_over_count_windows_sees_the_last_rows() -> None:
    class Numbers(hr.ProcessWindowFunction):
        def process(self, key: Any, context: Any, rows: Any) -> Any:
            return [{"pane": context.pane, "all": [r.number for r in rows]}]

    node = process_node(Numbers(), Count(3, 2), {"pane": str, "all": list[int]})
    rows = [(n, row("a", n)) for n in range(1, 8)]
    epochs = [
        StepEpoch(NO_WATERMARK, 0, rows[:3]),
        StepEpoch(0, 5, rows[3:]),
        StepEpoch(5, END_OF_TIME),
    ]
    harness = StepHarness(node)
    found = harness.run(epochs, restores={1: 1})[MAIN]
    assert [r["all"] for r in found] == [[1, 2], [2, 3, 4], [4, 5, 6]]
    assert {r["pane"] for r in found} == {"on_time"}
    assert kept_rows(harness) == 0


def test_process_batches_gets_the_rows_of_a_window_as_one_batch() -> None:
    def totals(batch: pa.RecordBatch, context: Any) -> pa.RecordBatch:
        total = sum(batch.column("number").to_pylist())
        columns = {"key": [context.key], "rows": [batch.num_rows], "total": [total]}
        return pa.RecordBatch.from_pydict(columns, schema=schema)

    schema = pa.schema([("key", pa.string()), ("rows", pa.int64()), ("total", pa.int64())])
    node = replace(step_node(WindowProcess, Window(10, 10), {}, batches=totals), schema=schema)
    epochs = [StepEpoch(NO_WATERMARK, 2, ROWS), StepEpoch(2, 9)]
    found = StepHarness(node, 2).run(epochs, restores={1: 3})[MAIN]
    assert sort(found) == sort(
        [{"key": "a", "rows": 2, "total": 3}, {"key": "b", "rows": 1, "total": 3}]
    )


@pytest.mark.parametrize("evictor", [None, evictors.count(1)])
@pytest.mark.parametrize("window", [Window(10, 10), Session(timedelta(microseconds=5)), Global()])
def test_nothing_is_kept_behind_the_end_of_time(window: Any, evictor: Any) -> None:
    node = process_node(Tells(), window, trigger=triggers.count(2), evictor=evictor)
    harness = StepHarness(node)
    harness.run(
        [StepEpoch(NO_WATERMARK, 2, ROWS), StepEpoch(2, 6, ROWS), StepEpoch(6, END_OF_TIME)]
    )
    assert kept_rows(harness) == 0


class Opens(Tells):
    """Says when it is opened and closed."""

    said: list[str]

    def __init__(self) -> None:
        self.said = []

    def open(self) -> None:
        self.said.append("open")

    def close(self) -> None:
        self.said.append("close")


def test_a_function_is_opened_before_its_first_call_and_closed_behind_the_last() -> None:
    function = Opens()
    StepHarness(process_node(function, Window(10, 10))).run(
        [StepEpoch(NO_WATERMARK, 2, ROWS), StepEpoch(2, 9)]
    )
    assert function.said == ["open", "close"]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda _: 1 / 0, r"'per-key' raised ZeroDivisionError[\s\S]*at key 'a'"),
        (lambda _: [{"unknown": 1}], "it returned the field 'unknown'"),
        (lambda _: {"key": "a"}, "process must yield rows"),
        (lambda _: [(hr.OutputTag("nowhere", {"x": int}), {"x": 1})], "declared are: 'big', 'empty'"),
        (lambda _: [(hr.OutputTag("big", {"key": str, "rows": int}), {"key": "a", "rows": "many"})], "'rows' must be int64"),
        (lambda context: context.window_state.calls.update("text"), "state of Wrong"),
        (lambda context: context.window_state.no_such, "declares no state 'no_such'"),
    ],
)  # fmt: skip
def test_what_a_function_does_wrong_names_the_step(made: Any, message: str) -> None:
    class Wrong(hr.ProcessWindowFunction):
        calls: hr.state.Value[int]

        def process(self, key: Any, context: Any, rows: Any) -> Any:
            return made(context)

    node = process_node(Wrong(), Window(10, 10), {"key": str}, lateness_us=50)
    with pytest.raises(UserCodeError, match=message) as caught:
        StepHarness(node).run([StepEpoch(NO_WATERMARK, 2, ROWS), StepEpoch(2, 9)])
    assert "per-key" in str(caught.value)


def test_late_rows_of_a_function_step_go_aside() -> None:
    node = process_node(Tells(), Window(10, 10))
    found = StepHarness(node).run([StepEpoch(NO_WATERMARK, 9, ROWS)])
    assert sort(found[LATE]) == sort([fields for _, fields in ROWS])


def test_without_a_key_a_function_gets_none() -> None:
    class Keys(hr.ProcessWindowFunction):
        def process(self, key: Any, context: Any, rows: Any) -> Any:
            return [{"key": repr(key)}]

    node = replace(process_node(Keys(), Window(10, 10), {"key": str}), keys=())
    found = StepHarness(node).run([StepEpoch(NO_WATERMARK, 2, ROWS), StepEpoch(2, 9)])[MAIN]
    assert found == [{"key": "None"}]
