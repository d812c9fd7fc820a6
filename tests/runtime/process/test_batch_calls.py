"""What a function on columns is given and may give back, one call at a time; and what it is told when it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from headrace._graph.nodes import MAIN, KeyedProcess
from headrace.errors import UserCodeError
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import TIME, Outputs, StepHarness
from headrace.watermarks import NO_WATERMARK
from tests.runtime.process.cases import process_node

OUTPUT = {"user": str, "n": int}
SCHEMA = pa.schema([("user", pa.string()), ("n", pa.int64())])
NOTES = hr.OutputTag("notes", {"user": str})
#: In the order in which they come to a shard: that of key groups.
ROWS = [(10, {"user": u, "n": n}) for u, n in (("b", 2), ("a", 1), ("a", 3))]


class Point(hr.KeyedBatchFunction):
    """State of many types; what it does is given."""

    n: hr.state.Value[int]
    share: hr.state.Value[float]
    seen: hr.state.Value[bool]
    word: hr.state.Value[str]
    at: hr.state.Value[datetime]
    day: hr.state.Value[date]
    long: hr.state.Value[timedelta]
    tags: hr.state.Value[list[str]]
    notes = NOTES

    def __init__(self, act: Callable[[Any, Any, Any], Any], fire: Any = None) -> None:
        self.act = act
        self.fire = fire

    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> Any:
        """As told."""
        return self.act(self, batch, ctx)

    def on_timers(self, timers: pa.RecordBatch, ctx: Any) -> Any:
        """As told."""
        return self.fire(self, timers, ctx)


def step(act: Any, fire: Any = None) -> KeyedProcess:
    return process_node(Point(act, fire), "batch", schema=OUTPUT, inputs=[OUTPUT], keys=[("user",)])


def run(act: Any, fire: Any = None, *epochs: StepEpoch) -> Outputs:
    """The outputs of an epoch with `ROWS`, or of these."""
    epochs = epochs or (StepEpoch(NO_WATERMARK, 5, ROWS, [], 0, 7),)
    return StepHarness(step(act, fire), stamped=True).run(epochs)


def test_keys_are_those_of_the_rows_in_the_order_in_which_they_come() -> None:
    def act(self: Any, batch: Any, ctx: Any) -> Any:
        assert batch.to_pylist() == [fields for _, fields in ROWS]
        assert len(ctx.keys) == 2
        assert ctx.keys.to_arrow().to_pylist() == [{"user": "b"}, {"user": "a"}]
        assert ctx.slots.tolist() == [0, 1, 1]
        assert ctx.timestamps.tolist() == [10, 10, 10]
        assert ctx.key_timestamps.tolist() == [10, 10]
        assert (ctx.uid, ctx.shard, ctx.time_domain) == ("per-key", 0, None)
        assert ctx.watermark == datetime(1970, 1, 1, 0, 0, 0, 5, UTC)
        assert ctx.clock == datetime(1970, 1, 1, 0, 0, 0, 7, UTC)
        return batch

    assert [row["n"] for row in run(act)[MAIN]] == [2, 1, 3]


@pytest.mark.parametrize(
    ("name", "given", "kind"),
    [
        ("n", np.array([5, 6]), np.int64),
        ("share", np.array([0.5, np.nan]), np.float64),
        ("seen", np.array([True, False]), np.bool_),
        ("at", np.array([5, 6], "datetime64[us]"), np.dtype("datetime64[us]")),
        ("day", np.array([5, 6], "datetime64[D]"), np.dtype("datetime64[D]")),
        ("long", np.array([5, 6], "timedelta64[us]"), np.dtype("timedelta64[us]")),
    ],
)
def test_numbers_and_times_are_numpy_arrays(name: str, given: Any, kind: Any) -> None:
    def act(self: Any, batch: Any, ctx: Any) -> None:
        state = getattr(self, name)
        assert state.get(ctx.keys).null_count == 2
        assert state.get(ctx.keys, default=given[0]).tolist() == given[[0, 0]].tolist()
        state.put([1], given[1:])
        found = state.get(ctx.keys, default=given[0])
        assert found.dtype == kind
        np.testing.assert_array_equal(found, given)
        assert state.get(ctx.slots).is_null().to_pylist() == [True, False, False]

    run(act)


def test_other_types_are_arrow_arrays() -> None:
    def act(self: Any, batch: Any, ctx: Any) -> None:
        self.word.put([1], ["ä"])
        assert self.word.get(ctx.keys).to_pylist() == [None, "ä"]
        assert self.word.get(ctx.slots, default="?").to_pylist() == ["?", "ä", "ä"]
        self.tags.put(ctx.keys, [["x"], []])
        self.tags.clear([1])
        assert self.tags.get(ctx.keys, default=["y", "z"]).to_pylist() == [["x"], ["y", "z"]]

    run(act)


def test_what_is_put_stays_one_value_for_all_or_the_last_of_several() -> None:
    def act(self: Any, batch: Any, ctx: Any) -> None:
        self.n.put(ctx.keys, 4)
        assert self.n.get(ctx.keys, default=0).tolist() == [4, 4]
        self.n.put(ctx.slots, batch.column("n"))
        assert self.n.get(ctx.keys, default=0).tolist() == [2, 3]
        self.word.put(ctx.slots, pa.array(["x", "y", "z"]))
        assert self.word.get(ctx.keys).to_pylist() == ["x", "z"]

    run(act)


def test_a_null_takes_away_and_a_mask_chooses_keys() -> None:
    def act(self: Any, batch: Any, ctx: Any) -> None:
        self.n.put(ctx.keys, [1, 2])
        self.n.put(ctx.slots, pa.array([None, None, 3]))
        assert self.n.get(ctx.keys).to_pylist() == [None, 3]
        self.n.put(ctx.keys, np.ma.array([1, 2], mask=[True, False]))
        assert self.n.get(ctx.keys).to_pylist() == [None, 2]
        self.n.clear(np.array([False, True]))
        assert self.n.get(ctx.keys).null_count == 2
        self.n.clear(ctx.keys)

    run(act)


def test_a_batch_of_rows_keeps_their_timestamps_and_any_other_says_its_own() -> None:
    def act(self: Any, batch: Any, ctx: Any) -> Iterator[Any]:
        yield batch
        yield pa.Table.from_batches([batch.slice(0, 0)])
        yield NOTES, batch.select(["user"])
        ctx.emit(batch.slice(0, 1), timestamps=[datetime(1970, 1, 1, tzinfo=UTC)])
        ctx.output(NOTES, batch.select(["user"]).slice(0, 2), timestamps=np.array([1, 2]))

    found = run(act)
    assert [row[TIME] for row in found[MAIN]] == [10, 10, 10, 0]
    assert [row[TIME] for row in found["notes"]] == [10, 10, 10, 1, 2]


def test_timers_come_in_one_call_in_order_of_time_each_once() -> None:
    calls: list[Any] = []

    def act(self: Any, batch: Any, ctx: Any) -> None:
        when = np.array([20, 30, 30])
        ctx.timers.register_event_time(ctx.slots, when)
        ctx.timers.register_event_time(ctx.keys, datetime(1970, 1, 1, tzinfo=UTC))
        ctx.timers.register_event_time(ctx.slots, when.astype("datetime64[us]"))
        ctx.timers.register_event_time([1], pa.array([25], pa.timestamp("us", "UTC")))
        ctx.timers.delete_event_time([1], [0])

    def fire(self: Any, timers: Any, ctx: Any) -> Any:
        times = timers.column("time").cast(pa.int64())
        users = timers.column("user")
        assert (
            users.to_pylist() == ctx.keys.to_arrow().column(0).take(pa.array(ctx.slots)).to_pylist()
        )
        assert ctx.timestamps.tolist() == times.to_pylist()
        calls.append((ctx.time_domain, users.to_pylist(), times.to_pylist()))
        return pa.RecordBatch.from_arrays([users, times], schema=SCHEMA)

    epochs = [
        StepEpoch(NO_WATERMARK, 5, ROWS, [], 0, 7),
        StepEpoch(5, 30, [], [], 7, 7),
        StepEpoch(30, 90, [], [], 7, 7),
    ]
    found = run(act, fire, *epochs)
    assert calls == [("event", ["b"], [0]), ("event", ["b", "a", "a"], [20, 25, 30])]
    assert [row[TIME] for row in found[MAIN]] == [0, 20, 25, 30]


class Call(NamedTuple):
    """What a function is called with."""

    function: Any
    batch: pa.RecordBatch
    ctx: Any


WRONG: list[tuple[Any, str]] = [
    (lambda at: at.function.n.get([2], default=0), "named the place 2, but this call has 2 keys"),
    (lambda at: at.function.n.put([-1], [0]), "named the place -1"),
    (lambda at: at.function.n.get(["b"]), "gave .* for places of keys"),
    (lambda at: at.function.n.clear(np.array([0.5])), "array of float64"),
    (lambda at: at.function.n.put(at.ctx.keys, [1, 2, 3]), "there are 3 values for 2 places"),
    (lambda at: at.function.n.put(at.ctx.keys, np.array([1, 2, 3])), "there are 3 values for 2 places"),
    (lambda at: at.function.n.put(at.ctx.keys, np.array([0.5, 1.5])), "'n' .* holds int64, .* float64"),
    (lambda at: at.function.n.put(at.ctx.keys, pa.array(["1", "2"])), "these are string"),
    (lambda at: at.function.n.put(at.ctx.keys, ["x", "y"]), "it holds int64"),
    (lambda at: at.function.n.get(at.ctx.keys, default="x"), "it holds int64"),
    (lambda at: at.function.n.put(at.ctx.keys, np.zeros((2, 1), np.int64)), r"shape \(2, 1\)"),
    (lambda at: at.ctx.timers.register_event_time(at.ctx.slots, [1, 2]), r"shape \(2,\) .* must be 3"),
    (lambda at: at.ctx.timers.register_event_time([7], [1]), "named the place 7"),
    (lambda at: at.ctx.timers.register_event_time(at.ctx.keys, [0.5, 1.5]), "array of double for instants"),
    (lambda at: at.ctx.timers.register_event_time([0], pa.array([None], pa.int64())), "are null"),
    (lambda at: at.ctx.timers.register_event_time([0], np.array(["NaT"], "M8[us]")), "NaT"),
    (lambda at: at.batch.select(["user"]), "the field 'n' .* is missing"),
    (lambda _: 5, "5 is none of these"),
    (lambda at: [at.batch.to_pylist()], "must return a RecordBatch"),
    (lambda at: (hr.OutputTag("other", OUTPUT), at.batch), "declared are: 'notes'"),
    (lambda at: at.ctx.output("notes", at.batch), "not declared"),
    (lambda at: at.batch.slice(1), "made 2 rows of 3, so their timestamps cannot be told"),
    (lambda at: at.ctx.emit(at.batch, timestamps=[1]), r"shape \(1,\) .* must be 3"),
    (lambda at: at.ctx.slots.__setitem__(0, 1), "read-only"),
    (lambda _: 1 // 0, "raised ZeroDivisionError"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "sentence"), WRONG)
def test_what_is_wrong_is_said_with_the_name_of_the_step(act: Any, sentence: str) -> None:
    def call(self: Any, batch: Any, ctx: Any) -> Any:
        return act(Call(self, batch, ctx))

    with pytest.raises(UserCodeError, match=sentence) as raised:
        run(call)
    assert "'per-key'" in str(raised.value)


def test_keys_and_state_end_with_their_call() -> None:
    kept: list[Any] = []

    def act(self: Any, batch: Any, ctx: Any) -> None:
        kept.append((self.n, ctx.keys))
        self.n.get(kept[0][1])

    epochs = [StepEpoch(NO_WATERMARK, 5, ROWS, ROWS, 0, 7)]
    with pytest.raises(UserCodeError, match=r"ctx\.keys of an earlier call"):
        run(act, None, *epochs)
    kept.clear()
    run(act)
    with pytest.raises(UserCodeError, match="outside of process_batch"):
        kept[-1][0].get(kept[-1][1])
