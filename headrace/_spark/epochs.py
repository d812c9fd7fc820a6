"""What happens when Spark has run an epoch: the reports are checked and become its manifest."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace._commit.checkpoint import Checkpoint
from headrace._commit.files import crc_of
from headrace._commit.ledger import Ledger
from headrace._commit.manifest import Manifest
from headrace._commit.publisher import Committer
from headrace._epochs.facts import Facts
from headrace._epochs.offset import Offset
from headrace._plan.laws import edges_of, laws_of
from headrace._plan.timing import assigned_partitions
from headrace._runtime.audit import Observed, audit, counts_of, foreign_state, observed
from headrace._runtime.metrics import added
from headrace._runtime.report import TaskReport
from headrace._spark.query import logged_offset
from headrace._spark.worker import Job
from headrace.errors import CheckpointDamaged, EngineError

__all__ = ["EpochRecorder", "RecordedEpoch"]


@dataclass(frozen=True)
class RecordedEpoch:
    """An epoch as the job's handle shows it."""

    offset: Offset
    manifest: Manifest
    rows: int
    elapsed_us: int
    #: uid of a keyed step -> key as JSON -> rows, the heaviest keys of the epoch
    heavy: Mapping[str, Mapping[str, int]]


class EpochRecorder:
    """Called by Spark once an epoch, in one thread."""

    def __init__(
        self,
        job: Job,
        checkpoint: Checkpoint,
        committer: Committer,
        *,
        previous: Manifest | None,
        versions: dict[str, str],
        notify: Callable[[RecordedEpoch], None],
    ) -> None:
        self._job = job
        self._checkpoint = checkpoint
        self._committer = committer
        self._previous = previous
        self._versions = versions
        self._notify = notify
        self._is_first = True
        #: The first error; Spark wraps and repeats it, this is the original.
        self.error: BaseException | None = None

    def __call__(self, epoch: int, run: Callable[[], list[TaskReport]]) -> None:
        try:
            self._record(epoch, run)
        except BaseException as error:
            self.error = self.error or error
            raise

    def _record(self, epoch: int, run: Callable[[], list[TaskReport]]) -> None:
        began = time.perf_counter_ns()
        reports = run()
        elapsed_us = (time.perf_counter_ns() - began) // 1000
        self._check(epoch, reports)
        offset = logged_offset(self._job, epoch)
        seen = observed(reports)
        # The first epoch of a start waits for workers, too, which says nothing of those behind it.
        worth_us = seen.at_work_us if self._is_first else elapsed_us
        self._is_first = False
        manifest = self._manifest(offset, reports, seen, worth_us)
        self._committer.record(manifest)
        self._previous = manifest
        rows = sum(seen.rows.values())
        self._notify(RecordedEpoch(offset, manifest, rows, elapsed_us, seen.heavy))
        self._job.faults.reach("K7", epoch)

    def _check(self, epoch: int, reports: list[TaskReport]) -> None:
        plan = self._job.plan
        problem = audit(reports, stages=plan.stages, shards=plan.shards)
        if problem:
            raise EngineError(f"Epoch {epoch} is run again, because {problem}")
        foreign = foreign_state(reports, self._previous.stamps if self._previous else {})
        if foreign:
            raise CheckpointDamaged(f"checkpoint {self._job.layout.root}: {foreign}")

    def _balance(self, epoch: int, reports: list[TaskReport]) -> Ledger:
        plan = self._job.plan
        counts = counts_of(reports)
        # Of this epoch alone: in an earlier run the steps between may have been others.
        problems = Ledger().add(counts).problems(laws_of(plan), edges_of(plan))
        if problems:
            raise EngineError(f"Epoch {epoch} does not add up: {'; '.join(problems)}")
        return Ledger(self._previous.counts if self._previous else {}).add(counts)

    def _manifest(
        self, offset: Offset, reports: list[TaskReport], seen: Observed, elapsed_us: int
    ) -> Manifest:
        layout = self._checkpoint.layout
        previous = self._previous
        before = Facts.from_json(previous.facts) if previous else Facts()
        ledger = self._balance(offset.epoch, reports)
        facts = before.after(
            offset,
            maxima=seen.maxima,
            minima=seen.minima,
            rows=seen.rows,
            size=seen.size,
            duration_us=elapsed_us,
            outlooks=seen.outlooks,
            generators=seen.generators,
            assigned=assigned_partitions(self._job.plan, offset),
            target_us=self._job.spec.epochs.target_us,
        )
        return Manifest(
            epoch=offset.epoch,
            fence=self._checkpoint.fence,
            incarnation=self._checkpoint.incarnation,
            facts=facts.to_json(),
            receipts=tuple(receipt for report in reports for receipt in report.receipts),
            counts=ledger.counts,
            metrics=added(previous.metrics if previous else {}, seen.metrics),
            stamps=seen.stamps,
            offsets_crc=crc_of(layout.offset(offset.epoch)),
            commits_crc=crc_of(layout.commit(offset.epoch - 1)),
            finished=offset.final,
            schemas={uid: str(node.schema) for uid, node in self._job.plan.sinks.items()},
            versions=self._versions,
        )
