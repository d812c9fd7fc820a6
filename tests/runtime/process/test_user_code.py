"""User code that misbehaves: a typed error that names the step and the row, and nothing half-done."""

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError
from headrace.testing import run_local

NUMBER = {"n": int}
TAGGED = {"n": int, "tags": list[str]}
BAD = 4

Misdeed = Callable[[Any], Any]


def raises(_: Any) -> Any:
    raise KeyError("no such thing")


def exits(_: Any) -> Any:
    sys.exit(3)


def stops(_: Any) -> Any:
    raise StopIteration


def hangs(_: Any) -> Any:
    time.sleep(60)


def mutates(row: Any) -> Any:
    row.n = 99


def on_batches(misdeed: Misdeed) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        if BAD in batch.column("n").to_pylist():
            misdeed(hr.state)
        return batch

    return function


def on_rows(misdeed: Misdeed, good: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda row, *_: misdeed(row) if row.n == BAD else good(row)


STEPS: dict[str, Callable[..., hr.Stream]] = {
    "map": lambda s, bad, **said: s.map(
        on_rows(bad, lambda row: {"n": row.n}), schema=NUMBER, uid="it", **said
    ),
    "flat_map": lambda s, bad, **said: s.flat_map(
        on_rows(bad, lambda row: [row]), schema=NUMBER, uid="it", **said
    ),
    "filter": lambda s, bad, **said: s.filter(on_rows(bad, lambda _: True), uid="it", **said),
    "split": lambda s, bad, **said: (
        s.split(none=on_rows(bad, lambda _: False), uid="it", **said).rest
    ),
    "process": lambda s, bad, **said: s.process(
        on_rows(bad, lambda row: [row]), schema=NUMBER, uid="it", **said
    ),
    "map_batches": lambda s, bad, **said: s.map_batches(
        on_batches(bad), schema=NUMBER, uid="it", **said
    ),
}


def job(step: str, misdeed: Misdeed, **said: Any) -> tuple[hr.Environment, hr.Stream, MemorySink]:
    env = hr.Environment("job", epochs=hr.Epochs(rows=5), call_limit=timedelta(milliseconds=100))
    source = env.from_source(MemorySource([{"n": n} for n in range(10)], NUMBER), uid="in")
    sink = MemorySink()
    made = STEPS[step](source, misdeed, **said)
    made.sink_to(sink, uid="out")
    return env, made, sink


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("misdeed", "told"),
    [
        (raises, "KeyError: 'no such thing'"),
        (exits, "SystemExit: 3"),
        (hangs, "took longer than its limit of 0:00:00.100000"),
    ],
)
def test_a_failing_call_is_a_typed_error_that_names_step_and_row(
    step: str, misdeed: Misdeed, told: str
) -> None:
    env, _, sink = job(step, misdeed)
    with pytest.raises(UserCodeError) as caught:
        run_local(env, attempts=1)
    message = str(caught.value)
    assert told in message
    assert "step 'it'" in message
    assert "source 'in', partition '0'" in message
    if step != "map_batches":
        assert "offset 4" in message
        assert "row Row(n=4)" in message
    assert f"in {misdeed.__name__}" in message
    # The first epoch has the row, so nothing of it may be seen.
    assert sink.to_pylist() == []


@pytest.mark.parametrize("step", [step for step in STEPS if step != "map_batches"])
def test_a_function_that_raises_stop_iteration_loses_no_rows(step: str) -> None:
    env, _, _ = job(step, stops)
    with pytest.raises(UserCodeError, match=r"StopIteration[\s\S]*row Row\(n=4\)"):
        run_local(env, attempts=1)


@pytest.mark.parametrize("step", [step for step in STEPS if step != "map_batches"])
def test_a_row_cannot_be_changed(step: str) -> None:
    env, _, _ = job(step, mutates)
    with pytest.raises(UserCodeError, match=r"AttributeError[\s\S]*row Row\(n=4\)"):
        run_local(env, attempts=1)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("misdeed", [raises, exits, hangs])
def test_dead_letters_hold_the_row_and_the_job_goes_on(step: str, misdeed: Misdeed) -> None:
    env, made, sink = job(step, misdeed, on_error="dead_letter")
    dead = MemorySink()
    made.errors.sink_to(dead, uid="dead")
    counts = run_local(env, attempts=1).counts["it"]
    assert [row["n"] for row in sink.to_pylist()] == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    [letter] = dead.to_pylist()
    assert (letter["uid"], letter["partition"], letter["offset"]) == ("it", "0", 4)
    assert letter["payload"] == '{"n": 4}'
    assert f"in {misdeed.__name__}" in letter["traceback"]
    assert "headrace/_runtime" not in letter["traceback"]
    assert counts == {"in": 10, "out": 9, "dead": 1}


@pytest.mark.parametrize(
    ("step", "wrong", "told"),
    [
        ("map", {"n": "text"}, "'n' must be int64, but it is 'text'"),
        ("map", None, "returned None"),
        ("flat_map", [{"m": 1}], "returned the field 'm'"),
        ("flat_map", 5, "TypeError: 'int' object is not iterable"),
        ("filter", None, "must return True or False"),
        ("split", 1, "must return True or False"),
        ("process", [{"n": "text"}], "'n' must be int64"),
        ("process", "text", "must yield rows"),
        ("process", {"n": 1}, "must yield rows"),
    ],
)
def test_a_result_of_the_wrong_type_is_a_failure_of_its_row(
    step: str, wrong: Any, told: str
) -> None:
    env, _, _ = job(step, lambda _: wrong)
    with pytest.raises(UserCodeError) as caught:
        run_local(env, attempts=1)
    for part in (told, "step 'it'", "offset 4", "row Row(n=4)"):
        assert part in str(caught.value)
    env, made, sink = job(step, lambda _: wrong, on_error="dead_letter")
    dead = MemorySink()
    made.errors.sink_to(dead, uid="dead")
    run_local(env, attempts=1)
    assert [row["n"] for row in sink.to_pylist()] == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    [letter] = dead.to_pylist()
    assert told in letter["cause"]
    assert letter["offset"] == 4


def test_what_a_function_prints_changes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    def chatty(row: Any) -> Any:
        print("hello")  # noqa: T201 - as users do
        return {"n": row.n}

    env, _, sink = job("map", chatty)
    run_local(env)
    assert len(sink.to_pylist()) == 10
    assert "hello" in capfd.readouterr().out


def test_values_inside_a_row_are_its_own_for_every_step() -> None:
    env, first, second, dead = hr.Environment("job"), MemorySink(), MemorySink(), MemorySink()
    source = env.from_source(MemorySource([{"n": 1, "tags": ["a"]}], TAGGED), uid="in")

    def change(row: Any) -> Any:
        row.tags.append("b")
        return row

    def fail(row: Any) -> Any:
        row.tags.clear()
        raise ValueError

    source.map(change, schema=TAGGED, uid="changed").sink_to(first, uid="first")
    failing = source.map(fail, schema=TAGGED, on_error="dead_letter", uid="failing")
    failing.errors.sink_to(dead, uid="dead")
    source.sink_to(second, uid="second")
    run_local(env)
    assert first.to_pylist() == [{"n": 1, "tags": ["a", "b"]}]
    assert second.to_pylist() == [{"n": 1, "tags": ["a"]}]
    assert dead.to_pylist()[0]["payload"] == '{"n": 1, "tags": ["a"]}'


def test_a_long_row_is_cut_in_a_message() -> None:
    env, sink = hr.Environment("job"), MemorySink()
    source = env.from_source(MemorySource([{"text": "x" * 10_000}], {"text": str}), uid="in")
    source.filter(raises, uid="it").sink_to(sink, uid="out")
    with pytest.raises(UserCodeError, match=r"row Row\(text='x+\.\.\. \(10,\d+ char") as caught:
        run_local(env, attempts=1)
    assert len(str(caught.value)) < 2_000


def test_the_key_function_sends_its_failures_to_errors() -> None:
    env, sink, dead = hr.Environment("job"), MemorySink(), MemorySink()
    source = env.from_source(MemorySource([{"n": n} for n in range(10)], NUMBER), uid="in")
    keyed = source.key_by(
        lambda row: "text" if row.n == 5 else 1 // (row.n - BAD),
        key_type=int,
        on_error="dead_letter",
        uid="it",
    )
    keyed.count_window(3).aggregate(rows=hr.count(), uid="counted").sink_to(sink, uid="out")
    keyed.errors.sink_to(dead, uid="dead")
    assert run_local(env).counts["it"] == {"in": 10, "out": 8, "dead": 2}
    assert [letter["offset"] for letter in dead.to_pylist()] == [4, 5]
    assert "ZeroDivisionError" in dead.to_pylist()[0]["cause"]
    assert "'key' must be int64" in dead.to_pylist()[1]["cause"]
