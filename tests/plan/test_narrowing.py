"""What a source is asked for. That the rest is not looked at is shown by every test that reads a list."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from headrace import aggregates, triggers
from headrace._graph.nodes import FilterBy
from headrace.endpoints import Sink
from headrace.environment import Environment
from headrace.expressions import col, lit
from headrace.functions import AggregateFunction
from headrace.stream import SourceStream, Stream
from headrace.watermarks import WatermarkStrategy
from headrace.windowed import WindowedStream
from headrace.windows import Session, Tumbling
from tests.builders.conftest import BIDS, Nothing

TIME = "date_time"
ALL = BIDS.names
EARLY = triggers.early(every=timedelta(seconds=1))


class Rows(AggregateFunction):
    """Sees whole rows."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def merge(self, one: int, other: int) -> int:
        return one + other

    def get_result(self, accumulator: int) -> int:
        return accumulator


class Asked(Nothing):
    """Remembers what it was asked for."""

    columns: Sequence[str] = ()
    timestamps = True
    has_record_timestamps = True

    def narrowed(self, columns: Sequence[str], *, timestamps: bool) -> "Asked":
        found = Asked(self._schema)
        found.columns, found.timestamps = columns, timestamps
        return found


@pytest.fixture
def asked(env: Environment, strategy: WatermarkStrategy) -> SourceStream:
    return env.from_source(Asked(BIDS), watermarks=strategy, uid="asked")


def found(env: Environment) -> Asked:
    source = env.plan(shards=2).sources["asked"].source
    assert isinstance(source, Asked)
    return source


def per_auction(stream: Stream) -> WindowedStream:
    return stream.key_by("auction").window(Tumbling(timedelta(seconds=10)))


JOBS: dict[str, tuple[Callable[[SourceStream], Stream], Sequence[str]]] = {
    "count": (lambda s: per_auction(s).aggregate(n=aggregates.count(), uid="w"), ["auction", TIME]),
    "sum": (
        lambda s: per_auction(s).aggregate(n=aggregates.sum("price"), uid="w"),
        ["auction", "price", TIME],
    ),
    "max_by": (
        lambda s: per_auction(s).aggregate(n=aggregates.max_by("channel", "price"), uid="w"),
        ["auction", "price", "channel", TIME],
    ),
    "filter": (
        lambda s: per_auction(s.filter((col("price") > 1) & col("tags").is_null())).aggregate(
            n=aggregates.count(), uid="w"
        ),
        ["auction", "price", "tags", TIME],
    ),
    "select": (lambda s: s.select("channel", twice=col("price") * 2), ["price", "channel", TIME]),
    "rows": (lambda s: s, ALL),
    "filtered rows": (lambda s: s.filter(col("price") > 1), ALL),
    "function": (lambda s: s.filter(lambda row: row.price > 1).select("price"), ALL),
    "late": (lambda s: per_auction(s).aggregate(n=aggregates.count(), uid="w").late, ALL),
    "errors": (lambda s: s.errors, ALL),
    "errors of a window": (
        lambda s: per_auction(s).aggregate(n=aggregates.count(), uid="w").errors,
        ALL,
    ),
    "constants": (lambda s: s.select(one=lit(1)), [TIME]),
    "early firings": (
        lambda s: per_auction(s).trigger(EARLY).aggregate(n=aggregates.count(), uid="w"),
        ["auction", TIME],
    ),
    "without keys": (
        lambda s: s.window_all(Tumbling(timedelta(seconds=1))).aggregate(
            n=aggregates.max("price"), uid="w"
        ),
        ["price", TIME],
    ),
    "a class of the user": (lambda s: per_auction(s).aggregate(n=Rows(), uid="w"), ALL),
    "sessions": (
        lambda s: (
            s.key_by("auction")
            .window(Session(timedelta(seconds=1)))
            .aggregate(n=aggregates.count(), uid="w")
        ),
        ALL,
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_only_columns_that_somebody_looks_at_are_asked_for(
    job: str, env: Environment, asked: SourceStream, sink: Sink
) -> None:
    build, columns = JOBS[job]
    build(asked).sink_to(sink, uid="out")
    assert found(env).columns == columns


def test_all_who_take_the_rows_are_asked(env: Environment, asked: SourceStream, sink: Sink) -> None:
    asked.select("price").sink_to(sink, uid="one")
    asked.select("tags").sink_to(sink, uid="two")
    asked.filter(lambda row: row.price > 1)  # reaches no sink
    assert found(env).columns == ["price", "tags", TIME]


@pytest.mark.parametrize(
    ("timing", "columns", "timestamps"),
    [
        (WatermarkStrategy.monotonous().with_timestamps(col(TIME)), ["price", TIME], False),
        (WatermarkStrategy.monotonous().with_timestamps(lambda row: row.date_time), ALL, False),
        (WatermarkStrategy.monotonous().with_record_timestamps(), ["price"], True),
        (WatermarkStrategy.ingestion_time(), ["price"], False),
        (None, ["price"], False),
    ],
)
def test_what_gives_rows_their_time_is_asked_for(
    timing: WatermarkStrategy | None,
    columns: Sequence[str],
    timestamps: bool,
    env: Environment,
    sink: Sink,
) -> None:
    stream = env.from_source(Asked(BIDS), watermarks=timing, uid="asked")
    stream.select("price").sink_to(sink, uid="out")
    assert (found(env).columns, found(env).timestamps) == (columns, timestamps)


def test_a_filter_keeps_what_somebody_behind_it_looks_at(
    env: Environment, asked: SourceStream, sink: Sink
) -> None:
    dear = asked.filter(col("price") > 1, uid="dear")
    told = dear.filter(col("auction") == 1, uid="told")
    told.select("channel").sink_to(sink, uid="one")
    asked.filter(col("price") > 2, uid="all").sink_to(sink, uid="two")
    taken = {n.uid: n.taken for n in env.plan().nodes.values() if isinstance(n, FilterBy)}
    assert taken == {
        "dear": frozenset(["auction", "channel"]),
        "told": frozenset(["channel"]),
        "all": None,
    }
