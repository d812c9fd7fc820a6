"""Process functions without keys: what they see, and where their results go."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from headrace._graph import nodes
from headrace._graph.nodes import ERRORS, MAIN
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Surroundings
from headrace._runtime.process.context import instant
from headrace._runtime.process.stateless import RowProcess
from headrace._runtime.rows import Origin, Rows
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError
from headrace.processed import PlainFunction
from headrace.testing import run_local
from headrace.watermarks import NO_WATERMARK

IN = pa.schema([("n", pa.int64())])
OUT = pa.schema([("n", pa.int64())])
BIG = hr.OutputTag("big", {"text": str})


@dataclass
class Numbered:
    n: int


class Sorted(hr.ProcessFunction):
    """Twice what is small; what is big goes elsewhere."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Numbered]:
        if value.n >= 10:
            ctx.output(BIG, {"text": str(value.n)})
            yield BIG, {"text": "again"}  # type: ignore[misc]
        else:
            yield Numbered(value.n)
            yield Numbered(-value.n)


def rows(*numbers: int, timed: bool = True) -> Rows:
    batch = pa.RecordBatch.from_pydict({"n": numbers}, schema=IN)
    stamps = np.arange(len(numbers)) * 1_000_000 if timed else None
    return Rows(batch, stamps, Origin("numbers", "p0", np.arange(100, 100 + len(numbers))))


def step(function: Any, side: int = 0, *, watermark: int = NO_WATERMARK, **fields: Any) -> Any:
    node = nodes.RowProcess(
        id=1,
        uid="it",
        inputs=(),
        schema=OUT,
        function=function if hasattr(function, "process_element") else PlainFunction(function),
        input_schemas=(IN,),
        side_outputs=(("big", BIG.schema),),
        **fields,
    )
    made = RowProcess(node, side)
    made.enter(Surroundings(watermark, 7_000_000, 3, Metrics("it")))
    return made


def test_results_go_where_they_belong_with_time_and_origin_of_their_row() -> None:
    made = dict(step(Sorted()).process(rows(1, 20, 2)))
    assert made[MAIN].batch.to_pydict() == {"n": [1, -1, 2, -2]}
    assert made[MAIN].timestamps.tolist() == [0, 0, 2_000_000, 2_000_000]
    assert made[MAIN].origin.offsets.tolist() == [100, 100, 102, 102]
    assert made["big"].batch.to_pydict() == {"text": ["20", "again"]}
    assert made["big"].timestamps.tolist() == [1_000_000, 1_000_000]
    assert made["big"].origin.offsets.tolist() == [101, 101]


@pytest.mark.parametrize("made", [None, [], (), iter(())])
def test_a_row_may_make_nothing(made: Any) -> None:
    assert list(step(lambda *_: made).process(rows(1, 2))) == []


@pytest.mark.parametrize("made", [[{"n": 5}], ({"n": 5},), iter([{"n": 5}])])
def test_a_function_may_return_any_iterable(made: Any) -> None:
    [(_, found)] = step(lambda *_: made).process(rows(1))
    assert found.batch.to_pydict() == {"n": [5]}


@pytest.mark.parametrize("made", ["text", b"bytes", {"n": 5}, 7])
def test_one_row_instead_of_several_is_an_error_that_says_what_to_write(made: Any) -> None:
    with pytest.raises(UserCodeError, match="return a list"):
        list(step(lambda *_: made).process(rows(1)))


def test_a_dict_that_is_changed_and_yielded_again_is_two_rows() -> None:
    def function(value: Any, _: Any) -> Iterator[Any]:
        row = {"n": 0}
        for row["n"] in range(value.n):
            yield row

    [(_, found)] = step(function).process(rows(3))
    assert found.batch.to_pydict() == {"n": [0, 1, 2]}


def test_the_context_tells_time_and_place() -> None:
    seen: list[Any] = []

    def function(_: Any, ctx: Any) -> None:
        seen.append((ctx.timestamp, ctx.watermark, ctx.clock, ctx.uid, ctx.shard))
        ctx.metrics.counter("seen").inc()

    made = step(function, watermark=5_000_000)
    list(made.process(rows(1, 2)))
    at = lambda seconds: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert seen == [(at(0), at(5), at(7), "it", 3), (at(1), at(5), at(7), "it", 3)]
    assert made._context.metrics.readings() == {"seen": 2}


def test_there_may_be_no_time() -> None:
    seen: list[Any] = []
    list(step(lambda _, c: seen.append((c.timestamp, c.watermark))).process(rows(1, timed=False)))
    assert seen == [(None, None)]


@pytest.mark.parametrize("name", ["key", "timers", "get_state"])
def test_what_needs_keys_is_refused_with_what_to_use(name: str) -> None:
    with pytest.raises(UserCodeError, match=rf"ctx\.{name}.*key_by"):
        list(step(lambda _, ctx: getattr(ctx, name)).process(rows(1)))


def test_a_tag_that_was_not_declared_is_named() -> None:
    other = hr.OutputTag("other", {"text": str})
    with pytest.raises(UserCodeError, match=r"OutputTag\('other'\).*'big'"):
        list(step(lambda _, ctx: ctx.output(other, {"text": ""})).process(rows(1)))


def test_two_inputs_have_methods_of_their_own() -> None:
    class Both(hr.CoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Iterator[Numbered]:
            yield Numbered(value.n)

        def process_element2(self, value: Any, ctx: Any) -> Iterator[Numbered]:
            yield Numbered(-value.n)

    node = nodes.RowProcess(
        id=1, uid="it", inputs=(), schema=OUT, function=Both(), input_schemas=(IN, IN)
    )
    found = []
    for side in (0, 1):
        made = RowProcess(node, side)
        made.enter(Surroundings(NO_WATERMARK, 0, 0, Metrics("it")))
        found += [result.batch.to_pydict()["n"] for _, result in made.process(rows(4))]
    assert found == [[4], [-4]]


def test_all_that_a_failing_row_made_is_undone() -> None:
    def function(value: Any, ctx: Any) -> Iterator[Any]:
        yield {"n": value.n}
        ctx.output(BIG, {"text": str(value.n)})
        if value.n % 2:
            raise ValueError(f"odd: {value.n}")

    made = dict(step(function, on_error="dead_letter").process(rows(2, 3, 4, 5)))
    assert made[MAIN].batch.to_pydict() == {"n": [2, 4]}
    assert made["big"].batch.to_pydict() == {"text": ["2", "4"]}
    dead = made[ERRORS].batch.to_pydict()
    assert dead["cause"] == ["ValueError: odd: 3", "ValueError: odd: 5"]
    assert dead["offset"] == [101, 103]
    assert dead["payload"] == ['{"n": 3}', '{"n": 5}']
    assert "raise ValueError" in dead["traceback"][0]
    assert "stateless.py" not in dead["traceback"][0].replace("test_stateless.py", "")


def test_a_result_that_does_not_fit_one_output_undoes_the_others() -> None:
    def function(value: Any, ctx: Any) -> Iterator[Any]:
        yield {"n": value.n}
        yield BIG, {"text": "fine" if value.n != 2 else 2}

    made = dict(step(function, on_error="dead_letter").process(rows(1, 2, 3)))
    assert made[MAIN].batch.to_pydict() == {"n": [1, 3]}
    assert made["big"].batch.to_pydict() == {"text": ["fine", "fine"]}
    assert "'text' must be string" in made[ERRORS].batch.to_pydict()["cause"][0]


def test_a_call_past_its_limit_is_a_dead_letter_too() -> None:
    import time

    def function(value: Any, _: Any) -> Iterator[Any]:
        yield {"n": value.n}
        if value.n == 2:
            time.sleep(60)

    made = dict(step(function, on_error="dead_letter", limit_us=50_000).process(rows(1, 2, 3)))
    assert made[MAIN].batch.to_pydict() == {"n": [1, 3]}
    assert "took longer than its limit" in made[ERRORS].batch.to_pydict()["cause"][0]


def test_outside_of_calls_there_is_no_row_to_answer() -> None:
    class Early(hr.ProcessFunction):
        def open(self, ctx: Any) -> None:
            assert (ctx.timestamp, ctx.shard) == (None, 3)
            ctx.output(BIG, {"text": "early"})

        def process_element(self, value: Any, ctx: Any) -> None:
            """Nothing."""

    with pytest.raises(UserCodeError, match="in open or after a call"):
        list(step(Early()).process(rows(1)))


def sources(env: hr.Environment, *names: str) -> list[hr.Stream]:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    made = [{"n": n, "at": start + timedelta(seconds=n)} for n in range(12)]
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    return [env.from_source(MemorySource(made), watermarks=strategy, uid=name) for name in names]


def test_the_watermark_is_that_of_the_epoch() -> None:
    env, sink = hr.Environment("told", epochs=hr.Epochs(rows=3)), MemorySink()
    left, right = sources(env, "left", "right")
    schema = {"watermark": datetime | None, "late": bool}

    def told(row: Any, ctx: Any) -> list[Any]:
        late = ctx.watermark is not None and ctx.timestamp <= ctx.watermark
        return [{"watermark": ctx.watermark, "late": late}]

    left.union(right, uid="both").process(told, schema=schema, uid="it").sink_to(sink, uid="out")
    result = run_local(env)
    entries = [epoch.watermarks["left+right"] for epoch in result.epochs if epoch.ranges]
    known = {None if us == NO_WATERMARK else instant(us) for us in entries[:4]}
    assert {row["watermark"] for row in sink.to_pylist()} == known
    assert len(known) > 2
    assert not any(row["late"] for row in sink.to_pylist())


def test_what_a_window_fires_is_seen_before_the_watermark_moves() -> None:
    env, sink = hr.Environment("told", epochs=hr.Epochs(rows=3)), MemorySink()
    [left] = sources(env, "left")
    fired = left.window_all(hr.windows.Tumbling(timedelta(seconds=2)))
    fired.aggregate(rows=hr.count(), uid="windows").process(
        lambda _, ctx: [{"ahead": ctx.watermark is None or ctx.timestamp > ctx.watermark}],
        schema={"ahead": bool},
        uid="it",
    ).sink_to(sink, uid="out")
    run_local(env)
    assert [row["ahead"] for row in sink.to_pylist()] == [True] * 6


def test_two_connected_streams_are_one_function() -> None:
    class Signed(hr.CoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Iterator[Numbered]:
            yield Numbered(value.n)

        def process_element2(self, value: Any, ctx: Any) -> Iterator[Numbered]:
            yield Numbered(1 // (value.n - 1))

    env, sink, dead = hr.Environment("told"), MemorySink(), MemorySink()
    left, right = sources(env, "left", "right")
    made = left.connect(right).process(Signed(), on_error="dead_letter", uid="it")
    made.sink_to(sink, uid="out")
    made.errors.sink_to(dead, uid="dead")
    counts = run_local(env).counts["it"]
    assert sum(row["n"] for row in sink.to_pylist()) == sum(range(12)) - 1 + 1
    assert [letter["cause"].split(":")[0] for letter in dead.to_pylist()] == ["ZeroDivisionError"]
    assert counts == {"in": 24, "out": 23, "dead": 1}
