"""Random pipelines with their right answers: what every engine is compared on.

A `Case` is a whole job as data: streams with disorder, nulls and cuts, the steps before a window, the window,
perhaps a second one behind it, and how the job is run. `build` makes the pipeline, `expected` computes what
must come out, row by row in plain Python and with the oracles of its steps, given the cuts and watermarks that
were used.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import headrace as hr
from headrace._graph.nodes import WindowStep
from headrace.aggregates import Aggregate
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import LocalEpoch
from headrace.testing.epochs import StepEpoch
from headrace.watermarks import CLOCK
from headrace.windows import Assigner
from tests.local.choices import TRIGGERS, WINDOWS
from tests.oracle import oracle_of

__all__ = ["AGGREGATES", "STEPS", "Case", "build", "expected", "found", "row"]

START = datetime(2025, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = {"key": str, "amount": int, "at": datetime, "n": int}
AGGREGATES: dict[str, Aggregate] = {
    "rows": hr.count(),
    "amounts": hr.count("amount"),
    "total": hr.sum("amount"),
    "least": hr.min("amount"),
    "most": hr.max("amount"),
    "mean": hr.avg("amount"),
    # Of two rows at one instant either may be first, so the instant itself is asked for.
    "earliest": hr.first("at"),
    "latest": hr.last("at"),
    "least_n": hr.min_by("amount", "n"),
    "most_n": hr.max_by("amount", "n"),
    "distinct": hr.count_distinct("amount"),
    "spread": hr.variance("amount"),
    "deviation": hr.stddev("amount", ddof=0),
    "all": hr.collect("amount"),
}

Row = Mapping[str, Any]
#: Partitions of rows, with marks between them.
Stream = Sequence[Sequence[Any]]
Answer = Mapping[str, Counter[tuple[tuple[str, Any], ...]]]


@dataclass(frozen=True)
class Case:
    """One job. Durations are whole seconds of event time."""

    #: source -> partition -> rows in order of arrival
    streams: tuple[Stream, ...]
    bounds: tuple[int, ...] = (0, 0)
    steps: tuple[str, ...] = ()
    key: str = "column"
    #: Which of `WINDOWS` the first one is, in which time, and what is said of it.
    kind: str = "hopping"
    time: Any = "event"
    trigger: str = ""
    accumulation: str = "accumulating"
    on_late: Any = "side_output"
    size: int = 10
    slide: int = 10
    offset: int = 0
    lateness: int = 0
    aggregates: tuple[str, ...] = ("rows", "total")
    #: The size of a second window over the results of the first, 0 for none, and its lateness.
    second: int = 0
    second_lateness: int = 0
    epoch_rows: int = 4
    shards: int = 1
    tasks: int = 1
    rescale: Mapping[int, int] = field(default_factory=dict)
    crashes: tuple[tuple[int, str], ...] = ()

    @property
    def window(self) -> Assigner:
        """The first window."""
        size, slide, offset = (timedelta(seconds=n) for n in (self.size, self.slide, self.offset))
        return WINDOWS[self.kind](size, slide, offset, self.time)


def row(
    second: float | datetime | None, key: str | None = "a", amount: int | None = 1, n: int = 0
) -> Row:
    """A row so many seconds after the start, or at any time; `n` is its number."""
    if isinstance(second, int | float):
        second = START + timedelta(seconds=second)
    return {"key": key, "amount": amount, "at": second, "n": n}


def build(case: Case, **settings: Any) -> tuple[hr.Environment, dict[str, MemorySink]]:
    """The pipeline, and its sinks by uid; `settings` are the environment's."""
    env = hr.Environment("case", epochs=hr.Epochs(rows=case.epoch_rows), **settings)
    sinks: dict[str, MemorySink] = {}

    def collect(stream: Any, uid: str) -> None:
        sinks[uid] = MemorySink()
        stream.sink_to(sinks[uid], uid=uid)

    stream = None
    for number, (partitions, bound) in enumerate(zip(case.streams, case.bounds, strict=False)):
        strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=bound))
        source = env.from_source(
            MemorySource(partitions=partitions, schema=SCHEMA),
            watermarks=strategy.with_timestamps("at"),
            uid=f"source-{number}",
        )
        collect(source.errors, f"dead-{number}")
        stream = source if stream is None else stream.union(source)
    for step in case.steps:
        stream = STEPS[step][0](stream)
    keyed = stream.key_by("key") if case.key == "column" else _by_function(stream)
    result = _said(keyed.window(case.window), case).aggregate(
        uid="first", **{name: AGGREGATES[name] for name in case.aggregates}
    )
    collect(result, "results")
    collect(result.errors, "errors")
    if case.on_late == "side_output":
        collect(result.late, "late")
    if case.second:
        again = (
            result.key_by("key")
            .window(hr.windows.Tumbling(timedelta(seconds=case.second)))
            .allowed_lateness(timedelta(seconds=case.second_lateness))
            .aggregate(uid="second", firings=hr.count(), last=hr.sum("firing"))
        )
        collect(again, "second-results")
        collect(again.late, "second-late")
    return env, sinks


def _said(window: Any, case: Case) -> Any:
    if case.window.timed:
        window = window.allowed_lateness(timedelta(seconds=case.lateness)).on_late(case.on_late)
    if case.trigger:
        window = window.trigger(TRIGGERS[case.trigger]())
    return getattr(window, case.accumulation)()


def found(sinks: Mapping[str, MemorySink]) -> Answer:
    """What came out, as a bag of rows for each sink; the position of an error is left out."""
    return {uid: _bag(sink.to_pylist(), uid) for uid, sink in sinks.items()}


def expected(case: Case, epochs: Sequence[LocalEpoch]) -> Answer:
    """What must come out, given these epochs."""
    answer: dict[str, list[Row]] = {f"dead-{number}": [] for number in range(len(case.streams))}
    steps = {n.uid: n for n in build(case)[0].graph.nodes if isinstance(n, WindowStep)}
    first = oracle_of(steps["first"])
    onward: list[StepEpoch] = []
    results: list[Row] = []
    late: list[Row] = []
    for epoch in epochs:
        rows, dead = _read(case, epoch)
        for uid, letters in dead.items():
            answer[uid] += letters
        given = _given(case, epoch)
        said = first.epoch(given._replace(rows=_timed(case, epoch, _steps(case, rows))))
        results += said.ticked + said.settled
        late += said.late
        if case.second:
            early, again = (
                [(_us(r["window_end"]) - 1, r) for r in rows]
                for rows in (said.ticked, said.settled)
            )
            onward.append(given._replace(rows=again, early=early))
    answer |= {"results": results, "errors": [_letter(r) for r in first.errors]}
    if case.on_late == "side_output":
        answer["late"] = late
    if case.second:
        answer["second-results"], answer["second-late"] = oracle_of(steps["second"]).run(onward)
    return {uid: _bag(rows, uid) for uid, rows in answer.items()}


def _given(case: Case, epoch: LocalEpoch) -> StepEpoch:
    """The times of an epoch, as the first window gets them."""
    sources = [f"source-{number}" for number in range(len(case.streams))]
    feeds = [CLOCK] if case.time == "processing" else sources
    return StepEpoch(
        min(epoch.before[feed] for feed in feeds),
        min(epoch.watermarks[feed] for feed in feeds),
        clock_before=epoch.clock_before_us,
        clock=epoch.clock_us,
    )


def _timed(case: Case, epoch: LocalEpoch, rows: Iterable[Row]) -> list[tuple[int, Row]]:
    by_clock = case.time == "processing"
    return [(epoch.clock_us if by_clock else _us(r["at"]), r) for r in rows]


def _read(case: Case, epoch: LocalEpoch) -> tuple[list[Row], dict[str, list[Row]]]:
    """The rows of an epoch, and the dead letters of each source."""
    rows: list[Row] = []
    dead: dict[str, list[Row]] = {}
    for number, partitions in enumerate(case.streams):
        ranges = epoch.ranges.get(f"source-{number}", {})
        for name, (start, end) in ranges.items():
            piece = [r for r in partitions[int(name)] if isinstance(r, dict)][start:end]
            rows += [r for r in piece if r["at"] is not None and r["at"].year < 9999]
            bad = [_letter(r) for r in piece if r["at"] is None or r["at"].year == 9999]
            dead.setdefault(f"dead-{number}", []).extend(bad)
    return rows, dead


def _letter(fields: Row) -> Row:
    return {"n": fields["n"]}


def _steps(case: Case, rows: Iterable[Row]) -> list[Row]:
    made = list(rows)
    for step in case.steps:
        made = [out for r in made for out in STEPS[step][1](r)]
    if case.key == "column":
        return made
    return [{**r, "name": r["key"], "key": _key_of(r)} for r in made]


def _by_function(stream: Any) -> Any:
    renamed = stream.select(name="key", amount="amount", at="at", n="n")
    return renamed.key_by(lambda r: None if r.name is None else r.name.upper(), key_type=str)


def _key_of(fields: Row) -> str | None:
    return None if fields["key"] is None else str(fields["key"]).upper()


def _doubled(fields: Any) -> Any:
    return {
        "key": fields.key,
        "amount": None if fields.amount is None else fields.amount * 2,
        "at": fields.at,
        "n": fields.n,
    }


def _times(fields: Any) -> Iterator[Any]:
    for _ in range(1 if fields.amount is None else fields.amount % 3):
        yield fields


def _ref_double(fields: Row) -> list[Row]:
    amount = fields["amount"]
    return [{**fields, "amount": None if amount is None else amount * 2}]


#: step -> (how it is written, what one row becomes)
STEPS: dict[str, tuple[Any, Any]] = {
    "map": (lambda s: s.map(_doubled, schema=SCHEMA), _ref_double),
    "flat_map": (
        lambda s: s.flat_map(_times, schema=SCHEMA),
        lambda r: [r] * (1 if r["amount"] is None else r["amount"] % 3),
    ),
    "filter": (
        lambda s: s.filter(lambda r: r.n % 4 != 0),
        lambda r: [r] if r["n"] % 4 != 0 else [],
    ),
    "condition": (
        lambda s: s.filter(hr.col("amount") > 1),
        lambda r: [r] if r["amount"] is not None and r["amount"] > 1 else [],
    ),
    "select": (
        lambda s: s.select("key", "at", "n", amount=hr.col("amount") * 3 - 1).select(*SCHEMA),
        lambda r: [{**r, "amount": None if r["amount"] is None else r["amount"] * 3 - 1}],
    ),
    "batches": (lambda s: s.map_batches(lambda batch: batch), lambda r: [r]),
    "self_union": (lambda s: s.union(s), lambda r: [r, r]),
}


def _us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def _bag(rows: Iterable[Row], uid: str) -> Counter[tuple[tuple[str, Any], ...]]:
    if uid.startswith(("dead", "errors")):
        rows = [_numbered(r) for r in rows]
    return Counter(tuple(sorted((k, _plain(v)) for k, v in r.items())) for r in rows)


def _numbered(letter: Row) -> Row:
    """A dead letter by the number of its row, which stands in the payload."""
    return _letter(json.loads(letter["payload"])) if "payload" in letter else letter


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        # In what order rows of several partitions come is nobody's promise.
        return tuple(sorted(value))
    if isinstance(value, float):
        return "nan" if math.isnan(value) else round(value, 6)
    return value
