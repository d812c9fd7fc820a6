"""Before the shuffle: rows become runs, and what cannot be used leaves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace._graph.nodes import SessionAggregate
from headrace._runtime import registry
from headrace._runtime.windows import folding
from headrace._runtime.windows.sessions import feeder
from headrace._runtime.windows.sessions.layout import LONGEST_US
from headrace.errors import UserCodeError
from headrace.testing.step_harness import timed_rows
from headrace.windows import Session
from tests.runtime.windows.cases import GAPS, SCHEMA, row, step_node

AGGREGATES = {"rows": agg.count(), "total": agg.sum("number")}
GAP = Session(timedelta(microseconds=5))
LONG_AGO = -(2**63)


def node_of(window: Session = GAP, **said: Any) -> SessionAggregate:
    return step_node(SessionAggregate, window, AGGREGATES, **said)


def fed(node: SessionAggregate, rows: list[Any], watermark: int = LONG_AGO) -> list[dict[str, Any]]:
    own = registry.feeder(node)
    assert list(own.feed(timed_rows(node.input_schema, rows), watermark)) == []
    return [run for batch in own.flush() for run in batch.to_pylist()]


def runs(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((r["key"], r["__start"], r["__end"], r["rows.count"]) for r in rows)


def test_rows_of_a_key_that_touch_are_one_run() -> None:
    rows = [(10, row("a")), (0, row("a")), (5, row("a")), (5, row("b")), (16, row("a"))]
    assert runs(fed(node_of(), rows)) == [("a", 0, 15, 3), ("a", 16, 21, 1), ("b", 5, 10, 1)]


def test_rows_closer_than_the_gap_are_grouped_without_a_sort(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeder, "merge_intervals", None)
    rows = [(5, row("a")), (0, row("a")), (3, row("b"))]
    assert runs(fed(node_of(), rows)) == [("a", 0, 10, 2), ("b", 3, 8, 1)]


def test_only_a_run_that_is_over_takes_its_rows_along() -> None:
    rows = [(0, row("a", 7)), (0, row("b")), (3, row("b")), (2, row("a", 8)), (30, row("c"))]
    lists = {run["key"]: run["__rows"] for run in fed(node_of(), rows, watermark=6)}
    assert [(r["number"], r["__ts"]) for r in lists["a"]] == [(7, 0), (8, 2)]
    assert not lists["b"]
    assert not lists["c"]


def test_nobody_wants_rows_that_will_be_sessions_of_their_own() -> None:
    (run,) = fed(node_of(on_late="own_window"), [(0, row("a"))], watermark=100)
    assert "__rows" not in run


def test_folds_are_cut_when_there_are_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "FOLD_ROWS", 2)
    own = registry.feeder(node_of())
    for time in range(0, 40, 10):
        list(own.feed(timed_rows(SCHEMA, [(time, row("a", time))]), 8))
    first, second = (batch.to_pylist() for batch in own.flush())
    assert [run["__start"] for run in first] == [0, 10]
    assert [len(run["__rows"] or ()) for run in first] == [1, 0]
    assert [run["__start"] for run in second] == [20, 30]
    assert not list(own.flush())


def test_heavy_keys_are_seen_with_and_without_a_sort() -> None:
    for times in (range(3), range(0, 300, 100)):
        own = registry.feeder(node_of())
        list(own.feed(timed_rows(SCHEMA, [(time, row("a")) for time in times]), 0))
        list(own.flush())
        assert own.heavy() == {'{"key": "a"}': 3}


def gap(us: int | None) -> timedelta | None:
    return None if us is None else timedelta(microseconds=us)


@pytest.mark.parametrize("window", [Session.dynamic("gap"), Session.dynamic(lambda r: r.gap)])
def test_a_gap_that_is_null_or_not_positive_makes_a_dead_letter(window: Session) -> None:
    rows = [(n, row(f"k{n}", gap=gap(us))) for n, us in enumerate((4, None, 0, -3))]
    own = registry.feeder(node_of(window, schema=GAPS))
    ((output, dead),) = own.feed(timed_rows(GAPS, rows), 0)
    assert output == "errors"
    assert dead.batch.column("cause").to_pylist() == [
        "gap is null",
        "gap of 0 us is not longer than zero",
        "gap of -3 us is not longer than zero",
    ]
    assert runs([r for b in own.flush() for r in b.to_pylist()]) == [("k0", 0, 4, 1)]


@pytest.mark.parametrize(("unit", "us"), [("s", 2_000_000), ("ms", 2_000), ("us", 2), ("ns", 0)])
def test_gaps_of_any_unit(unit: str, us: int) -> None:
    schema = SCHEMA.append(pa.field("gap", pa.duration(unit)))
    batch = timed_rows(SCHEMA, [(7, row("a"))])
    column = pa.array([2 if us else 2_500], pa.duration(unit))
    rows = batch.with_batch(batch.batch.append_column(schema.field("gap"), column))
    own = registry.feeder(node_of(Session.dynamic("gap"), schema=schema))
    assert list(own.feed(rows, 0)) == []
    (run,) = next(own.flush()).to_pylist()
    assert run["__end"] - run["__start"] == (us or 2)


def test_gaps_longer_than_all_time_do_not_overflow() -> None:
    longest = timedelta(days=999_999_999)
    year_9999 = 253_402_300_799_999_999
    for window in (Session(longest), Session.dynamic(lambda _: longest)):
        (run,) = fed(node_of(window), [(year_9999, row("a"))])
        assert run["__end"] == year_9999 + LONGEST_US
    seconds = SCHEMA.append(pa.field("gap", pa.duration("s")))
    batch = timed_rows(SCHEMA, [(0, row("a"))])
    column = pa.array([np.iinfo(np.int64).max], pa.duration("s"))
    rows = batch.with_batch(batch.batch.append_column(seconds.field("gap"), column))
    own = registry.feeder(node_of(Session.dynamic("gap"), schema=seconds))
    assert list(own.feed(rows, 0)) == []
    assert next(own.flush()).column("__end").to_pylist()[0] > LONGEST_US // 2


def test_a_function_that_gives_no_duration_is_refused() -> None:
    with pytest.raises(UserCodeError, match="timedelta or None, not 3"):
        fed(node_of(Session.dynamic(lambda _: 3)), [(0, row("a"))])  # type: ignore[arg-type,return-value]
