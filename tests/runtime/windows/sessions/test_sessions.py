"""When sessions merge, fire, fire again and go, one fact a test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from headrace import aggregates as agg
from headrace._graph.nodes import SessionAggregate
from headrace._runtime import registry
from headrace._runtime.operator import Moment, Outlook
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace._runtime.windows.sessions import firing
from headrace._runtime.windows.sessions.layout import DUE, MORE, SESSIONS
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness, timed_rows
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Session
from tests.runtime.contract import assert_same, kept_rows
from tests.runtime.windows.cases import SCHEMA, answer, row, step_node

COUNT = {"rows": agg.count()}
GAP = Session(timedelta(microseconds=5))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def node_of(window: Session = GAP, **said: Any) -> SessionAggregate:
    return step_node(SessionAggregate, window, said.pop("aggregates", COUNT), **said)


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """(key, start, end, pane, firing, rows), in order."""

    def us(instant: datetime) -> int:
        return (instant - EPOCH) // timedelta(microseconds=1)

    return sorted(
        (r["key"], us(r["window_start"]), us(r["window_end"]), r["pane"], r["firing"], r["rows"])
        for r in rows
    )


def at(*times: int, key: str = "a") -> list[Any]:
    return [(time, row(key)) for time in times]


def test_rows_that_touch_are_one_session_and_those_beyond_are_two() -> None:
    harness = StepHarness(node_of())
    results = harness.run([StepEpoch(NO_WATERMARK, 0, at(0, 5, 11)), StepEpoch(0, END_OF_TIME)])
    assert shown(results["main"]) == [("a", 0, 10, "on_time", 0, 2), ("a", 11, 16, "on_time", 0, 1)]


def test_a_session_fires_when_the_watermark_reaches_its_last_microsecond() -> None:
    harness = StepHarness(node_of())
    assert not harness.run([StepEpoch(NO_WATERMARK, 0, at(0)), StepEpoch(0, 3)])["main"]
    assert shown(harness.run([StepEpoch(3, 4)])["main"]) == [("a", 0, 5, "on_time", 0, 1)]
    assert not harness.run([StepEpoch(4, 4)])["main"]


def test_a_session_bridges_two_others_of_different_epochs() -> None:
    #     epoch 1    [0----5)
    #     epoch 2                 [9---14)
    #     epoch 3         [4----9)            all three are one
    harness = StepHarness(node_of(), 2)
    epochs = [StepEpoch(NO_WATERMARK, -9, at(times)) for times in (0, 9)]
    results = harness.run([*epochs, StepEpoch(-9, -8, at(4)), StepEpoch(-8, END_OF_TIME)])
    assert shown(results["main"]) == [("a", 0, 14, "on_time", 0, 3)]


def test_one_row_bridges_many_sessions_of_its_key_and_of_no_other() -> None:
    node = node_of(Session.dynamic(lambda r: timedelta(microseconds=r.number)))
    rows = [(10 * n, row(key, 3)) for key in ("a", "b") for n in range(50)]
    harness = StepHarness(node)
    harness.run([StepEpoch(NO_WATERMARK, -9, rows)])
    assert kept_rows(harness) == 100 + 2
    harness.run([StepEpoch(-9, -8, [(0, row("a", 491))])])
    assert kept_rows(harness) == 51 + 2
    results = harness.run([StepEpoch(-8, END_OF_TIME)])["main"]
    assert [r for r in shown(results) if r[0] == "a"] == [("a", 0, 493, "on_time", 0, 51)]
    assert len(results) == 51


def test_a_row_behind_the_watermark_that_joins_a_live_session_is_not_late() -> None:
    # [3, 8) would be over at W = 8, but it touches [8, 13).
    harness = StepHarness(node_of())
    outputs = harness.run([StepEpoch(NO_WATERMARK, 8, at(8)), StepEpoch(8, 8, at(3, 2, key="a"))])
    assert not outputs["late"]
    assert shown(harness.run([StepEpoch(8, 12)])["main"]) == [("a", 2, 13, "on_time", 0, 3)]


def test_rows_in_between_keep_each_other_from_being_late() -> None:
    # Alone the row at 0 is over; with the one at 5, in whatever batch, it is not.
    for times in ((0, 5), (5, 0)):
        harness = StepHarness(node_of(), batch_rows=1)
        outputs = harness.run([StepEpoch(NO_WATERMARK, 8), StepEpoch(8, 8, at(*times))])
        assert not outputs["late"]


def test_late_rows_keep_their_columns_and_timestamps() -> None:
    node = node_of(lateness_us=2)
    feeder = registry.feeder(node)
    rows = [(7, row("a", 1, text="x")), (0, row("a", 2, text="y")), (6, row("b", 3)), (9, row("b"))]
    assert list(feeder.feed(timed_rows(SCHEMA, rows), 13)) == []
    (batch,) = feeder.flush()
    operator = registry.keyed(node, _state(node))
    list(operator.tick(Moment(12, 13, 0, 0)))
    operator.merge(batch)
    late = dict(operator.settle())["late"]
    assert late.batch.schema == SCHEMA
    assert [(r["key"], r["number"], r["text"]) for r in late.batch.to_pylist()] == [
        ("a", 1, "x"),
        ("a", 2, "y"),
    ]
    assert late.timestamps is not None
    assert late.timestamps.tolist() == [7, 0]


def test_a_late_row_fires_its_session_again_once_an_epoch() -> None:
    harness = StepHarness(node_of(lateness_us=10))
    harness.run([StepEpoch(NO_WATERMARK, 0, at(0)), StepEpoch(0, 4)])
    again = harness.run([StepEpoch(4, 4, at(1, 2) + at(-1, key="new"))])["main"]
    # [0, 7) is open again; the other key's session was never there in time.
    assert shown(again) == [("new", -1, 4, "late", 1, 1)]
    assert shown(harness.run([StepEpoch(4, 6)])["main"]) == [("a", 0, 7, "late", 1, 3)]
    again = harness.run([StepEpoch(6, 6, at(1, 2, -5))])["main"]
    assert shown(again) == [("a", -5, 7, "late", 2, 6)]


def test_a_bridged_session_counts_on_from_its_part_that_fired_most() -> None:
    harness = StepHarness(node_of(lateness_us=100))
    harness.run([StepEpoch(NO_WATERMARK, 0, at(0, 12)), StepEpoch(0, 17)])
    harness.run([StepEpoch(17, 17, at(12)), StepEpoch(17, 17, at(12))])
    bridged = harness.run([StepEpoch(17, 17, at(5, 7))])["main"]
    assert shown(bridged) == [("a", 0, 17, "late", 3, 6)]


def test_a_last_correction_of_early_rows_goes_out_when_the_session_is_over() -> None:
    harness = StepHarness(node_of(lateness_us=3))
    harness.run([StepEpoch(NO_WATERMARK, 0, at(0)), StepEpoch(0, 4)])
    outputs = harness.run([StepEpoch(4, 30, at(0), at(0))])
    assert shown(outputs["main"]) == [("a", 0, 5, "late", 1, 2)]
    assert len(outputs["late"]) == 1
    assert kept_rows(harness) == 0


def test_late_rows_of_both_phases_are_sessions_of_their_own() -> None:
    node = node_of(on_late="own_window", aggregates=COUNT | {"all": agg.collect("number")})
    harness = StepHarness(node)
    rows = [(3, row("a", 1)), (1, row("b", 9)), (40, row("a", 7))]
    outputs = harness.run([StepEpoch(20, 30, rows, [(5, row("a", 2)), (4, row("a", 3))])])
    assert not outputs["late"]
    assert shown(outputs["main"]) == [("a", 3, 10, "own", 0, 3), ("b", 1, 6, "own", 0, 1)]
    assert outputs["main"][0]["all"] == [2, 3, 1]


def test_a_number_that_was_given_up_is_used_again() -> None:
    harness = StepHarness(node_of())
    before, kept = NO_WATERMARK, set()
    for start in range(0, 200, 10):
        harness.run([StepEpoch(before, start - 3, at(start))])
        before = start - 3
        kept.add(kept_rows(harness))
    # One or two sessions at a time, a head that may be hollow, and an entry or two in the index.
    assert max(kept) <= 6


def test_a_key_that_had_many_sessions_is_looked_up_once_when_one_is_left() -> None:
    node = node_of()
    state = _state(node)
    operator = registry.keyed(node, state)
    operator.merge(_fed(node, at(1000), NO_WATERMARK))
    list(operator.tick(Moment(NO_WATERMARK, 0, 0, 0)))
    operator.merge(_fed(node, at(*range(10, 500, 10)), 0))
    list(operator.settle())
    table = state.table(SESSIONS, 0)
    assert table.get(MORE, table.live()).max() == 49
    list(operator.tick(Moment(0, 600, 0, 0)))
    assert table.get(MORE, table.live()).tolist() == [0]


def test_state_is_gone_when_the_last_session_is_over() -> None:
    node = node_of(lateness_us=2, aggregates=COUNT | {"all": agg.collect("number")})
    harness = StepHarness(node)
    harness.run([StepEpoch(NO_WATERMARK, 0, at(0, 20) + at(1, key="b")), StepEpoch(0, 24)])
    assert kept_rows(harness) > 0
    harness.run([StepEpoch(24, 26)])
    assert kept_rows(harness) == 0


def test_results_carry_the_last_microsecond_of_their_session() -> None:
    node = node_of()
    operator = registry.keyed(node, _state(node))
    operator.merge(_fed(node, at(0, 3, 20), NO_WATERMARK))
    ((_, rows),) = operator.tick(Moment(NO_WATERMARK, END_OF_TIME, 0, 0))
    assert sorted(np.asarray(rows.timestamps).tolist()) == [7, 24]


def test_it_says_what_it_waits_for() -> None:
    for time, due in (("event", None), ("processing", 8)):
        node = node_of(Session(timedelta(microseconds=5), time=time))  # type: ignore[arg-type]
        operator = registry.keyed(node, _state(node))
        list(operator.tick(Moment(NO_WATERMARK, 1, 0, 2)))
        operator.merge(_fed(node, at(3) + at(3, key="b"), 1))
        assert not list(operator.settle())
        assert operator.outlook() == Outlook(7, 2, due)
        assert len(list(operator.tick(Moment(1, 7, 2, 8)))) == 1
        assert not list(operator.settle())
        assert operator.outlook() == Outlook()


def test_nothing_that_waits_is_looked_at_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    node = node_of(Session(timedelta(seconds=10)))
    state = _state(node)
    operator = registry.keyed(node, state)
    rows = [(n, row(f"k{n}")) for n in range(2_000)]
    list(operator.tick(Moment(NO_WATERMARK, 0, 0, 0)))
    operator.merge(_fed(node, rows, 0))
    list(operator.settle())
    state.commit()
    tables = {name: type(state.table(name, state.buckets(name)[0])) for name in (SESSIONS, DUE)}
    looked: list[int] = []
    for kind in set(tables.values()):
        original = kind.find

        def spy(self: Any, hashes: Any, keys: Any, original: Any = original) -> Any:
            looked.append(len(hashes))
            return original(self, hashes, keys)

        monkeypatch.setattr(kind, "find", spy)
    for second in range(1, 5):
        list(operator.tick(Moment((second - 1) * 1_000_000, second * 1_000_000, 0, 0)))
        list(operator.settle())
    assert sum(looked) == 0


def test_large_results_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "EMIT_ROWS", 3)
    node = node_of(lateness_us=2, on_late="own_window")
    rows = [(t, row(f"k{k}")) for k in range(8) for t in (1, 3, 30)]
    epochs = [
        StepEpoch(NO_WATERMARK, 0, rows),
        StepEpoch(0, 8, rows),
        StepEpoch(8, END_OF_TIME, (), rows[:6]),
    ]
    assert_same(StepHarness(node).run(epochs), answer(node, epochs))


def _state(node: SessionAggregate) -> ShardState:
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    return state


def _fed(node: SessionAggregate, rows: list[Any], watermark: int) -> Any:
    feeder = registry.feeder(node)
    assert list(feeder.feed(timed_rows(node.input_schema, rows), watermark)) == []
    (batch,) = feeder.flush()
    return batch
