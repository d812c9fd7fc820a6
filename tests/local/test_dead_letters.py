"""Dead letters of user code: exact counts, whatever crashes, however rows are cut and read."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local
from tests.examples import examples

NUMBER = {"n": int}


def picky(row: Any) -> Any:
    """Fails on multiples of three, and returns what does not fit for multiples of five."""
    if row.n % 3 == 0:
        raise ValueError(f"no {row.n}")
    return {"n": "five"} if row.n % 5 == 0 else {"n": row.n}


def several(row: Any, ctx: Any) -> Iterator[Any]:
    for _ in range(abs(row.n) % 4):
        yield picky(row)
        ctx.metrics.counter("yielded").inc()


def on_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    if any(n % 3 == 0 or n % 5 == 0 for n in batch.column("n").to_pylist()):
        raise ValueError("not these")
    return batch


def pipeline(numbers: list[int], epoch: int) -> tuple[hr.Environment, dict[str, MemorySink]]:
    env = hr.Environment("dead", epochs=hr.Epochs(rows=epoch))
    rows = env.from_source(MemorySource([{"n": n} for n in numbers], NUMBER), uid="in")
    steps = {
        "map": rows.map(picky, schema=NUMBER, on_error="dead_letter", uid="map"),
        "filter": rows.filter(lambda r: picky(r)["n"] > 0, on_error="dead_letter", uid="filter"),
        "process": rows.process(several, schema=NUMBER, on_error="dead_letter", uid="process"),
        "batches": rows.map_batches(on_columns, NUMBER, on_error="dead_letter", uid="batches"),
    }
    sinks = {}
    for name, made in steps.items():
        sinks[name], sinks[f"{name}-dead"] = MemorySink(), MemorySink()
        made.sink_to(sinks[name], uid=f"{name}-out")
        made.errors.sink_to(sinks[f"{name}-dead"], uid=f"{name}-dead")
    return env, sinks


def check(numbers: list[int], sinks: dict[str, MemorySink], counts: Any) -> None:
    good = Counter(n for n in numbers if n % 3 and n % 5)
    bad = Counter(range(len(numbers))) - Counter(
        place for place, n in enumerate(numbers) if n % 3 and n % 5
    )
    bag = lambda sink, field="n": Counter(row[field] for row in sink.to_pylist())
    assert bag(sinks["map"]) == bag(sinks["batches"]) == good
    assert bag(sinks["map-dead"], "offset") == bag(sinks["batches-dead"], "offset") == bad
    assert counts["map"].get("dead", 0) == bad.total()
    assert bag(sinks["filter"]) == Counter(n for n in good.elements() if n > 0)
    # A multiple of five is "five" > 0, a TypeError.
    assert bag(sinks["filter-dead"], "offset") == bad
    assert counts["filter"].get("filtered", 0) == sum(n < 0 for n in good.elements())
    # Of a row that yields nothing, nothing can fail.
    yielding = Counter(place for place in bad if abs(numbers[place]) % 4)
    assert bag(sinks["process-dead"], "offset") == yielding
    assert (
        bag(sinks["process"]) == Counter({n: k * (abs(n) % 4) for n, k in good.items()}) + Counter()
    )


@given(
    numbers=st.lists(st.integers(-30, 30), min_size=1, max_size=30),
    epoch=st.integers(1, 12),
    tasks=st.integers(1, 3),
    crash=st.tuples(st.integers(0, 3), st.sampled_from(POINTS)),
)
@examples(15)
def test_every_row_is_accounted_for(numbers: list[int], epoch: int, tasks: int, crash: Any) -> None:
    env, sinks = pipeline(numbers, epoch)
    result = run_local(env, tasks=tasks, crashes=[crash])
    check(numbers, sinks, result.counts)


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_neither_loses_nor_doubles_a_dead_letter(point: Any) -> None:
    numbers = list(range(1, 40))
    env, sinks = pipeline(numbers, 10)
    result = run_local(env, crashes=[(epoch, point) for epoch in range(4)])
    assert result.restarts == 4
    check(numbers, sinks, result.counts)
    # Metrics are of calls: a row whose results do not fit has been called too, one that raised has yielded nothing.
    whole = sum(n % 4 for n in numbers if n % 3 and n % 5)
    assert result.metrics["process"]["yielded"] == whole + sum(
        n % 4 for n in numbers if n % 3 and n % 5 == 0
    )


def test_a_reduce_that_fails_on_a_row_goes_on_without_it() -> None:
    def add(a: Any, b: Any) -> Any:
        if b.n == 2:
            raise ValueError("two")
        return b._replace(n=a.n + b.n)

    env, sums, dead = hr.Environment("reduce"), MemorySink(), MemorySink()
    source = MemorySource([{"k": "a", "n": n} for n in range(5)], {"k": str, "n": int})
    rows = env.from_source(source, uid="rows")
    made = rows.key_by("k").reduce(add, forever=True, on_error="dead_letter", uid="sums")
    made.sink_to(sums, uid="out")
    made.errors.sink_to(dead, uid="dead")
    result = run_local(env, shards=2)
    assert [row["n"] for row in sums.to_pylist()] == [0, 1, 4, 8]
    assert [(row["cause"], row["offset"]) for row in dead.to_pylist()] == [("ValueError: two", 2)]
    assert result.counts["sums"]["dead"] == 1
