"""Sketches, reductions and balances inside real windows: over panes, shards, restores and a crash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace import approximate as approx
from headrace._graph.nodes import MAIN, WindowAggregate
from headrace.aggregates import Aggregate
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.runtime.contract import assert_same, sort
from tests.runtime.windows.cases import SCHEMA, row, step_node

WINDOWS = [Window(6, 6), Window(6, 2)]
RUNS: dict[str, dict[str, Any]] = {
    "kept": {},
    "restored": {"restores": {1: 1, 2: 3, 3: 2}},
    "crashed": {"crashes": [1, 2]},
}
WORDS = ["x", "yy", "x", None, "z", "yy", "x"]


def stream(**more: Any) -> list[StepEpoch]:
    timed = [
        (ts, row("ab"[ts % 2], ts * 7 % 5, text=WORDS[ts % len(WORDS)], **more)) for ts in range(24)
    ]
    return [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, timed[::3]),
        StepEpoch(NO_WATERMARK, 3, timed[1::3]),
        StepEpoch(3, 9, timed[2::3]),
        StepEpoch(9, END_OF_TIME),
    ]


def results(node: WindowAggregate, how: Mapping[str, Any], epochs: list[StepEpoch]) -> Any:
    return StepHarness(node, 2).run(epochs, **how)


def node_of(
    window: Window, schema: pa.Schema = SCHEMA, *, weighted: bool = False, **aggregates: Aggregate
) -> WindowAggregate:
    return step_node(
        WindowAggregate, window, aggregates, schema=schema, lateness_us=50, weighted=weighted
    )


@pytest.mark.parametrize("how", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("window", WINDOWS, ids=["tumbling", "hopping"])
def test_sketches_of_few_values_say_what_exact_aggregates_say(
    window: Window, how: Mapping[str, Any]
) -> None:
    sketched = node_of(
        window,
        seen=approx.approx_count_distinct("text"),
        ends=approx.approx_quantiles("number", [0, 1]),
        top=approx.approx_top("text", 99),
    )
    exact = node_of(
        window,
        seen=agg.count_distinct("text"),
        least=agg.min("number"),
        most=agg.max("number"),
        words=agg.collect("text"),
    )
    found = results(sketched, how, stream())[MAIN]
    expected = results(exact, {}, stream())[MAIN]
    for result in expected:
        words = result.pop("words")
        counts = sorted((-words.count(word), word) for word in set(words))
        result["top"] = [{"item": word, "count": -count} for count, word in counts]
        result["ends"] = [result.pop("least"), result.pop("most")]
    assert len(found) > 5
    assert sort(found) == sort(expected)


def _joined(a: Any, b: Any) -> dict[str, Any]:
    later = max(a, b, key=lambda one: one.number)
    return {name: later[name] for name in SCHEMA.names} | {
        "number": a.number + b.number,
        "text": "".join(sorted((a.text or "") + (b.text or ""))),
    }


@pytest.mark.parametrize("how", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("window", WINDOWS, ids=["tumbling", "hopping"])
def test_reduced_rows_survive(window: Window, how: Mapping[str, Any]) -> None:
    reduced = node_of(window, row=agg.reduce_of(_joined))
    exact = node_of(window, total=agg.sum("number"), words=agg.collect("text"))
    found = [
        {name: value for name, value in result.items() if name != "row"}
        | {"total": result["row"]["number"], "words": result["row"]["text"]}
        for result in results(reduced, how, stream())[MAIN]
    ]
    expected = results(exact, {}, stream())[MAIN]
    for result in expected:
        # A row that is alone is not reduced, so it keeps its null.
        words = "".join(sorted("".join(result["words"])))
        result["words"] = words
    assert sort([r | {"words": r["words"] or ""} for r in found]) == sort(expected)


@pytest.mark.parametrize("how", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("window", WINDOWS, ids=["tumbling", "hopping"])
def test_withdrawn_rows_leave_no_trace(window: Window, how: Mapping[str, Any]) -> None:
    schema = SCHEMA.append(pa.field("change", pa.string()))
    aggregates = {"rows": agg.count(), "total": agg.sum("number"), "mean": agg.avg("number")}
    plain = node_of(window, schema, **aggregates)
    weighted = node_of(window, schema, weighted=True, **aggregates)
    kept = stream(change="+I")
    wrong = [(ts, row("a", 1000 + ts, change="+I")) for ts in range(0, 24, 2)]
    gone = [(ts, fields | {"change": "-U"}) for ts, fields in wrong]
    noisy = [
        kept[0]._replace(rows=[*wrong, *kept[0].rows]),
        kept[1]._replace(rows=[*kept[1].rows, *gone]),
        *kept[2:],
    ]
    found = results(weighted, how, noisy)
    expected = results(plain, {}, kept)
    # Windows that fired before the wrong rows were withdrawn fired again; the last firing counts.
    assert_same({MAIN: _last(found[MAIN])}, {MAIN: _last(expected[MAIN])})


def _last(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    newest: dict[Any, dict[str, Any]] = {}
    for result in sorted(rows, key=lambda result: result["firing"]):
        newest[result["key"], result["window_start"]] = result
    hidden = ("firing", "pane")
    return [{k: v for k, v in result.items() if k not in hidden} for result in newest.values()]
