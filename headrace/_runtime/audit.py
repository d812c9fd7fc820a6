"""Do the reports of an epoch's tasks make one whole epoch? Pure.

When an executor is lost Spark may run a producer again for some consumers only. Two attempts of one
producer could then be mixed in one epoch, with rows that differ if user code is not deterministic. Every
task reports whom it consumed, so a mixture, a missing task and a doubled one all show here, before the
manifest is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from headrace._runtime.heavy import heaviest
from headrace._runtime.metrics import Metrics
from headrace._runtime.report import TaskReport
from headrace._watermarks.generators import State

__all__ = ["Observed", "audit", "counts_of", "foreign_state", "observed"]

#: So many of a step's keys are remembered.
_HEAVIEST = 16

Stamps = Mapping[str, Mapping[str, str]]


def audit(reports: Sequence[TaskReport], *, stages: int, shards: int) -> str | None:
    """What is wrong with the epoch, or None. To run it again may help."""
    return next(chain(_missing(reports, stages, shards), _mixed(reports)), None)


def foreign_state(reports: Sequence[TaskReport], stamps: Stamps) -> str | None:
    """What is wrong with the state that the epoch began with; `stamps` are those of the last manifest."""
    return next(_foreign(reports, stamps), None)


@dataclass(frozen=True, slots=True)
class Observed:
    """What the tasks of an epoch saw together."""

    #: source -> partition -> greatest timestamp
    maxima: dict[str, dict[str, int]]
    #: source -> partition -> least timestamp
    minima: dict[str, dict[str, int]]
    rows: dict[str, int]
    size: int
    #: uid of a keyed step -> shard -> stamp of its state behind the epoch
    stamps: dict[str, dict[str, str]]
    #: uid of a keyed step -> [fires_at, keys, due], see `Outlook`
    outlooks: dict[str, list[int | None]]
    #: source -> partition -> what its watermark generator remembers
    generators: dict[str, dict[str, State]]
    #: uid of a keyed step -> its heaviest keys, as JSON -> rows
    heavy: dict[str, dict[str, int]]
    #: uid of a step -> what its function counted
    metrics: dict[str, Metrics]
    #: How long tasks were at work, one stage behind the other.
    at_work_us: int


def observed(reports: Sequence[TaskReport]) -> Observed:
    """The reports of one epoch, added up."""
    total = TaskReport(0, 0, 0, "")
    stamps: dict[str, dict[str, str]] = {}
    for report in reports:
        for source, rows in report.rows.items():
            total.read(source, rows, 0)
        for source, parts in report.maxima.items():
            for partition, stamp in parts.items():
                total.observe(source, partition, report.minima[source][partition], stamp)
        for source, states in report.generators.items():
            # One task reads a partition that has a generator.
            total.generators.setdefault(source, {}).update(states)
        for uid, (_, after) in report.stamps.items():
            stamps.setdefault(uid, {})[str(report.task)] = after
        for uid, weights in report.heavy.items():
            total.weigh(uid, weights)
    return Observed(
        maxima=total.maxima,
        minima=total.minima,
        rows=total.rows,
        size=sum(report.size for report in reports),
        stamps=stamps,
        outlooks=_outlooks(reports),
        generators=total.generators,
        heavy={uid: heaviest(weights, _HEAVIEST) for uid, weights in total.heavy.items()},
        metrics=_metrics(reports),
        at_work_us=_at_work_us(reports),
    )


def counts_of(reports: Sequence[TaskReport]) -> dict[str, dict[str, int]]:
    """The counts of an epoch. What a sink put out is what its receipts say, not what went into it."""
    total = TaskReport(0, 0, 0, "")
    for report in reports:
        for uid, counts in report.counts.items():
            for what, rows in counts.items():
                total.count(uid, what, rows)
        for receipt in report.receipts:
            total.count(receipt.sink, "out", receipt.rows)
    return total.counts


def _at_work_us(reports: Sequence[TaskReport]) -> int:
    longest: dict[int, int] = {}
    for report in reports:
        longest[report.stage] = max(longest.get(report.stage, 0), report.elapsed_us)
    return sum(longest.values())


def _metrics(reports: Sequence[TaskReport]) -> dict[str, Metrics]:
    """In the order of tasks: of a gauge that several set, the value of the last one stays."""
    total = TaskReport(0, 0, 0, "")
    for report in sorted(reports, key=lambda report: (report.stage, report.task)):
        for uid, metrics in report.metrics.items():
            total.metrics_of(uid).add(metrics)
    return total.metrics


def _outlooks(reports: Sequence[TaskReport]) -> dict[str, list[int | None]]:
    """The nearest firing over all shards, how many rows it has in those that share it, the earliest wish."""
    found: dict[str, list[int | None]] = {}
    for uid in sorted({uid for report in reports for uid in report.outlooks}):
        mine = [report.outlooks[uid] for report in reports if uid in report.outlooks]
        fires_at = min((at for at, _, _ in mine if at is not None), default=None)
        keys = 0 if fires_at is None else sum(rows for at, rows, _ in mine if at == fires_at)
        due = min((wish for _, _, wish in mine if wish is not None), default=None)
        found[uid] = [fires_at, keys, due]
    return found


def _missing(reports: Sequence[TaskReport], stages: int, shards: int) -> Iterator[str]:
    for stage in range(stages):
        tasks = sorted(report.task for report in reports if report.stage == stage)
        wanted = shards if stage else max((r.tasks for r in reports if r.stage == 0), default=1)
        if tasks != list(range(wanted)):
            yield f"stage {stage} has reports of the tasks {tasks}, expected {wanted}"


def _mixed(reports: Sequence[TaskReport]) -> Iterator[str]:
    attempts = {f"{report.stage}/{report.task}": report.attempt for report in reports}
    for report in reports:
        for producer, attempt in report.consumed.items():
            if attempts.get(producer) != attempt:
                yield (
                    f"task {report.stage}/{report.task} has read another attempt of task {producer} "
                    "than the one that reported"
                )


def _foreign(reports: Sequence[TaskReport], stamps: Stamps) -> Iterator[str]:
    for report in reports:
        for uid, (before, _) in report.stamps.items():
            known = stamps.get(uid, {}).get(str(report.task), "")
            if before != known:
                yield (
                    f"the state of step '{uid}' in shard {report.task} has the stamp {before!r}, but "
                    f"the last manifest says {known!r}"
                )
