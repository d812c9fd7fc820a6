"""Whole jobs with random programs, and their right answers: what is compared on `_local` and on Spark.

A program step gets rows of one source, or of two; behind it stands a step that gets its results, those of timers
before the tick. `build` makes the pipeline, `expected` asks the interpreter, given the cuts and watermarks that
were used.

Rows of a key lie in one partition of a source, so their order of arrival is known; with `ordered` they need not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import headrace as hr
from headrace._graph.nodes import ERRORS, LATE, MAIN, KeyedProcess
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import LocalEpoch
from headrace.testing.epochs import SidedRow, StepEpoch
from tests.oracle import ProcessOracle
from tests.runtime.process.cases import expected_state
from tests.runtime.process.programs import (
    ASIDE,
    ELSEWHERE,
    INPUT,
    OTHER,
    RULES,
    BroadcastProgram,
    CoProgram,
    Program,
    Told,
)

__all__ = ["ProgramJob", "build", "expected", "found", "kept"]

START = datetime(2025, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
US = timedelta(microseconds=1)

_FUNCTIONS = {"keyed": Program, "co": CoProgram, "broadcast": BroadcastProgram}
_SCHEMAS = {"keyed": (INPUT,), "co": (INPUT, OTHER), "broadcast": (INPUT, RULES)}

Answer = dict[str, Counter[Any]]


@dataclass(frozen=True)
class ProgramJob:
    """One job. Times are in units behind the start."""

    kind: str
    uses: tuple[str, ...]
    on_timers: tuple[Any, ...]
    #: input -> partition -> (time, fields) in order of arrival, with marks between them
    streams: tuple[tuple[tuple[Any, ...], ...], ...]
    unit: int = 1
    ordered: bool = False
    on_error: Any = "fail"
    bound: int = 3
    epoch_rows: int = 4
    shards: int = 1
    tasks: int = 1
    rescale: Mapping[int, int] = field(default_factory=dict)
    crashes: tuple[tuple[int, str], ...] = ()

    @property
    def schemas(self) -> tuple[dict[str, Any], ...]:
        """The columns of each source."""
        return tuple({**schema, "at": datetime} for schema in _SCHEMAS[self.kind])


class Behind(hr.KeyedProcessFunction):
    """Counts what the programs of a key said, and says so again a little later."""

    said: hr.state.Value[int]
    last: hr.state.Map[str, int] = hr.state.keep(forever=True)

    def __init__(self, unit: int) -> None:
        self.unit = unit

    def process_element(self, value: Any, ctx: Any) -> Iterator[Told]:
        """One more."""
        self.said.update((self.said.value() or 0) + 1)
        self.last[value.what[:6]] = value.n
        ctx.timers.register_event_time(ctx.timestamp + 2 * self.unit * US)
        yield _told(ctx, value.n, f"{self.said.value()}")

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Told]:
        """So many."""
        yield _told(ctx, 0, f"{self.said.value()} {self.last.items()}")
        self.said.clear()


def _told(ctx: Any, n: int, what: str) -> Told:
    at, mark = ((m - EPOCH) // US if m else None for m in (ctx.timestamp, ctx.watermark))
    return Told(ctx.key, n, what, at, mark, 0, getattr(ctx, "time_domain", None))


def build(job: ProgramJob, **settings: Any) -> tuple[hr.Environment, dict[str, MemorySink]]:
    """The pipeline, and its sinks by uid; `settings` are the environment's."""
    env = hr.Environment("programs", epochs=hr.Epochs(rows=job.epoch_rows), **settings)
    sinks: dict[str, MemorySink] = {}

    def collect(stream: Any, uid: str) -> None:
        sinks[uid] = MemorySink()
        stream.sink_to(sinks[uid], uid=uid)

    function = _FUNCTIONS[job.kind](job.uses, job.on_timers, job.unit)
    said: dict[str, Any] = {"on_error": job.on_error, "uid": "programs"}
    if job.kind != "broadcast":
        said["ordered"] = job.ordered
    result = _inputs(env, job).process(function, **said)
    collect(result, MAIN)
    collect(result.errors, ERRORS)
    collect(result.side_output(ASIDE), ASIDE.name)
    collect(result.side_output(ELSEWHERE), ELSEWHERE.name)
    if job.ordered:
        collect(result.late, LATE)
    keyed = result.filter(lambda told: told.key is not None).key_by("key")
    collect(keyed.process(Behind(job.unit), uid="second"), "behind")
    return env, sinks


def _inputs(env: hr.Environment, job: ProgramJob) -> Any:
    bound = hr.WatermarkStrategy.bounded_out_of_orderness(job.bound * job.unit * US)
    streams: list[Any] = []
    for side, (partitions, schema) in enumerate(zip(job.streams, job.schemas, strict=True)):
        rows = [[_row(job, row) for row in partition] for partition in partitions]
        streams.append(
            env.from_source(
                MemorySource(partitions=rows, schema=schema),
                watermarks=bound.with_timestamps("at"),
                uid=f"source-{side}",
            )
        )
    if job.kind == "keyed":
        return streams[0].key_by("key")
    if job.kind == "co":
        return streams[0].connect(streams[1]).key_by("key", "name")
    return streams[0].key_by("key").connect(streams[1].broadcast())


def _row(job: ProgramJob, row: Any) -> Any:
    """A row of a source, or the mark that it is."""
    if not isinstance(row, tuple):
        return row
    return {**row[1], "at": START + row[0] * job.unit * US}


def found(sinks: Mapping[str, MemorySink]) -> Answer:
    """What came out, as a bag of rows for each sink."""
    return {uid: _bag(sink.to_pylist(), uid) for uid, sink in sinks.items()}


def kept(job: ProgramJob, read: Any) -> dict[str, Any]:
    """The state at the end; `read` is `LocalResult.read_state` or one like it."""
    env, _ = build(job)
    steps = {n.uid: n for n in env.graph.nodes if isinstance(n, KeyedProcess)}
    return {
        uid: {
            spec.name: sorted((tuple(r.values()) for r in read(uid, spec.name).to_pylist()), key=repr)
            for spec in step.states
        }
        for uid, step in steps.items()
    }  # fmt: skip


def expected(job: ProgramJob, epochs: Sequence[LocalEpoch]) -> tuple[Answer, dict[str, Any]]:
    """What must come out and what must be there at the end, given these epochs."""
    env, sinks = build(job)
    steps = {n.uid: n for n in env.graph.nodes if isinstance(n, KeyedProcess)}
    first, behind = ProcessOracle(steps["programs"]), ProcessOracle(steps["second"])
    answer: dict[str, list[Any]] = {uid: [] for uid in sinks}
    for epoch in epochs:
        told = _times(job, epoch, ["source-0"] if job.kind == "broadcast" else None)
        both = first.epoch(told._replace(rows=_read(job, epoch)))
        for said in both:
            for output, rows in said.items():
                answer.setdefault(output, []).extend(row for _, row in rows)
        # Rules hold back neither step.
        early, rest = ([r for r in said.get(MAIN, ()) if r[1]["key"]] for said in both)
        onward = behind.epoch(told._replace(early=early, rows=rest))
        answer["behind"] += [row for said in onward for _, row in said.get(MAIN, ())]
    state = {"programs": expected_state(first), "second": expected_state(behind)}
    return {uid: _bag(rows, uid) for uid, rows in answer.items()}, state


def _times(job: ProgramJob, epoch: LocalEpoch, feeds: Sequence[str] | None) -> StepEpoch:
    feeds = feeds or [f"source-{side}" for side in range(len(job.streams))]
    return StepEpoch(
        min(epoch.before[feed] for feed in feeds),
        min(epoch.watermarks[feed] for feed in feeds),
        clock_before=epoch.clock_before_us,
        clock=epoch.clock_us,
    )


def _read(job: ProgramJob, epoch: LocalEpoch) -> list[SidedRow]:
    """The rows of an epoch."""
    rows = []
    for side, partitions in enumerate(job.streams):
        uid = f"source-{side}"
        for name, (start, end) in sorted(epoch.ranges.get(uid, {}).items()):
            piece = [r for r in partitions[int(name)] if isinstance(r, tuple)]
            for offset in range(start, end):
                fields = _row(job, piece[offset])
                at = (fields["at"] - EPOCH) // US
                rows.append(SidedRow(at, fields, side, (uid, name, offset)))
    return rows


def _bag(rows: Sequence[Mapping[str, Any]], uid: str) -> Counter[Any]:
    if uid == ERRORS:
        rows = [_letter(row) for row in rows]
    return Counter(tuple(sorted((k, str(v)) for k, v in row.items())) for row in rows)


def _letter(row: Mapping[str, Any]) -> dict[str, Any]:
    """A dead letter by its cause and what it was, but for the time of its row, which JSON shows in its own way."""
    payload = row["payload"]
    fields = json.loads(payload) if isinstance(payload, str) else payload
    return {"cause": row["cause"], **{k: v for k, v in fields.items() if k != "at"}}
