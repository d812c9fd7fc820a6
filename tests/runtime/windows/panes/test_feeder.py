"""Before the shuffle: null keys, late rows, equal keys, and folding."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace._graph.nodes import ERRORS, ERRORS_SCHEMA, LATE
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.windows import folding
from headrace._runtime.windows.panes.feeder import WindowFeeder
from headrace._runtime.windows.panes.layout import PANE
from headrace.errors import EngineError
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness, timed_rows
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.runtime.windows.cases import SCHEMA, row, window_node

COUNT = {"rows": agg.count()}


def test_a_null_key_is_a_dead_letter_with_its_origin() -> None:
    feeder = WindowFeeder(window_node(Window(4, 4), 0, COUNT, keys=("key", "text")))
    rows = timed_rows(SCHEMA, [(1, row("a", text="x")), (2, row(None, 5)), (3, row("b"))])
    rows = Rows(rows.batch, rows.timestamps, Origin("bids", "p0", np.array([7, 8, 9])))
    ((output, dead),) = feeder.feed(rows, NO_WATERMARK)
    assert output == ERRORS
    assert dead.batch.schema == ERRORS_SCHEMA
    first, second = dead.batch.to_pylist()
    assert (first["uid"], first["partition"], first["offset"]) == ("per-key", "p0", 8)
    assert first["cause"] == "null key 'key', null key 'text'"
    assert json.loads(first["payload"])["number"] == 5
    assert (second["cause"], second["offset"]) == ("null key 'text'", 9)
    assert [batch.num_rows for batch in feeder.flush()] == [1]


@pytest.mark.parametrize(("watermark", "is_late"), [(11, False), (12, True)])
def test_a_row_is_late_when_its_last_window_is_over(watermark: int, is_late: bool) -> None:
    # The last window of timestamp 5 is [4, 10); with a lateness of 3 it is over at W = 9 + 3.
    feeder = WindowFeeder(window_node(Window(6, 2), 3, COUNT))
    outputs = [output for output, _ in feeder.feed(timed_rows(SCHEMA, [(5, row("a"))]), watermark)]
    assert outputs == ([LATE] if is_late else [])
    assert len(list(feeder.flush())) == (0 if is_late else 1)


def test_a_row_is_folded_into_one_pane_however_many_windows_it_is_in() -> None:
    feeder = WindowFeeder(window_node(Window(60, 2), 0, COUNT))
    assert not list(feeder.feed(timed_rows(SCHEMA, [(5, row("a")), (4, row("a"))]), NO_WATERMARK))
    (batch,) = feeder.flush()
    assert batch.column(PANE).to_pylist() == [4]
    assert batch.column("rows.count").to_pylist() == [2]
    assert not list(feeder.flush())


def test_rows_are_folded_when_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "FOLD_ROWS", 4)
    feeder = WindowFeeder(window_node(Window(4, 4), 0, COUNT))
    for _ in range(3):
        list(feeder.feed(timed_rows(SCHEMA, [(1, row("a"))] * 3), NO_WATERMARK))
    counts = [batch.column("rows.count").to_pylist() for batch in feeder.flush()]
    assert counts == [[6], [3]]


def test_wide_rows_are_folded_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "FOLD_BYTES", 100)
    feeder = WindowFeeder(window_node(Window(4, 4), 0, {"first": agg.first("text")}))
    for size in (1, 200, 1):
        list(feeder.feed(timed_rows(SCHEMA, [(1, row("a", text="x" * size))]), NO_WATERMARK))
    assert len(list(feeder.flush())) == 2


def test_rows_without_timestamps_are_refused() -> None:
    feeder = WindowFeeder(window_node(Window(4, 4), 0, COUNT))
    with pytest.raises(EngineError, match="per-key"):
        list(feeder.feed(Rows(timed_rows(SCHEMA, [(1, row("a"))]).batch, None), NO_WATERMARK))


@pytest.mark.parametrize(
    ("kind", "values", "groups"),
    [
        (pa.float64(), [0.0, -0.0, float("nan"), -float("nan"), 1.5], 3),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a"], 2),
        (pa.decimal128(10, 2), [1, 1, 2], 2),
        (pa.large_binary(), [b"", b"\0", b""], 2),
        (pa.bool_(), [True, False, True], 2),
    ],
    ids=str,
)
def test_equal_keys_meet(kind: pa.DataType, values: list[object], groups: int) -> None:
    schema = pa.schema([("key", kind)])
    node = window_node(Window(4, 4), 0, COUNT, schema=schema)
    epochs = [StepEpoch(NO_WATERMARK, NO_WATERMARK, [(1, {"key": v})]) for v in values]
    together = StepEpoch(NO_WATERMARK, NO_WATERMARK, [(1, {"key": v}) for v in values])
    end = StepEpoch(NO_WATERMARK, END_OF_TIME)
    results = StepHarness(node).run([*epochs, together, end])["main"]
    assert len(results) == groups
    assert sum(result["rows"] for result in results) == 2 * len(values)
