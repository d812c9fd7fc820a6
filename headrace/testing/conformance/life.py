"""One start of a checked job, from recovery to its end: real commit code around a model of Spark.

Spark's logs are written as Spark writes them, tasks are run by whoever is asked for them. `live` is called in a process that
may be killed at any instant; `live_here` in this one, where a crash is an exception and the objects of a run that "died"
are left alive, as those of a run that hung would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from headrace._commit.checkpoint import Checkpoint, logged_epochs
from headrace._commit.faults import Faults
from headrace._commit.files import crc_of, make_directory, write_durably
from headrace._commit.manifest import Manifest, write_manifest
from headrace._commit.paths import Layout
from headrace._commit.publication import Publication
from headrace._commit.publisher import Committer
from headrace._commit.recovery import recover
from headrace.endpoints import Publisher, Receipt, Sink, SinkContext
from headrace.testing.conformance.script import EPOCHS, TASKS, UIDS
from headrace.testing.conformance.travel import travelled

__all__ = ["Ask", "Job", "Wrap", "committed"]

#: Runs one task of (epoch, task, incarnation, fence) somewhere and returns the receipts.
Ask: TypeAlias = Callable[[int, int, str, int], Sequence[Receipt]]
#: Makes a publisher in its own way.
Wrap: TypeAlias = Callable[[Callable[[], Publisher]], Publisher]

JOB = "conformance"


@dataclass(frozen=True)
class Job:
    """A job with two sinks of the same kind, on one checkpoint."""

    root: Path
    sink: Sink
    schema: pa.Schema

    def context(self, uid: str, incarnation: str, fence: int) -> SinkContext:
        spool = Layout(self.root).spool(uid)
        return SinkContext(JOB, incarnation, uid, self.schema, spool, fence)

    def live(self, ask: Ask, faults: Faults, wrap: Wrap, patience_s: float, *, last: int) -> None:
        """Run up to an epoch in this process, which is one of its own."""
        checkpoint, publishers = self._begin(wrap)
        recovered = recover(checkpoint, publishers, faults=faults)
        committer = Committer(checkpoint, publishers, faults=faults)
        for epoch in range(recovered.durable + 1, last + 1):
            manifest = _run(checkpoint, epoch, ask, faults)
            committer.record(manifest)
            faults.reach("K7", epoch)
            _commit(checkpoint, epoch)
        if not committer.wait_published(last, patience_s):
            raise AssertionError(
                f"publishing did not end within {patience_s:.0f} s: {committer.problem}"
            )
        committer.close(flush=True)

    def live_here(self, ask: Ask, faults: Faults, publishers: dict[str, Publisher]) -> None:
        """Run to the end or to a crash in this process; `publishers` are left for later."""
        checkpoint, made = self._begin(lambda make: make())
        publishers.update(made)
        recovered = recover(checkpoint, made, faults=faults)
        publication = Publication(checkpoint, made, faults=faults)
        for epoch in range(recovered.durable + 1, len(EPOCHS)):
            manifest = _run(checkpoint, epoch, ask, faults)
            faults.reach("K5", epoch)
            write_manifest(checkpoint.layout, manifest)
            faults.reach("K6", epoch)
            faults.reach("K7", epoch)
            _commit(checkpoint, epoch)
            publication.publish(manifest)
        publication.flush()

    def stage(
        self, uid: str, epoch: int, incarnation: str, fence: int, task: str, batch: pa.RecordBatch
    ) -> Sequence[Receipt]:
        """What a task does, in two writes."""
        context = self.context(uid, incarnation, fence)
        stager = travelled(self.sink).stager(context, epoch, task)
        half = batch.num_rows // 2
        for part in (batch.slice(0, half), batch.slice(half)):
            stager.write(part)
        return tuple(stager.close())

    def _begin(self, wrap: Wrap) -> tuple[Checkpoint, Mapping[str, Publisher]]:
        checkpoint = Checkpoint.open(
            self.root,
            job=JOB,
            signature={},
            digest="",
            shards=None,
            default_shards=1,
            versions={},
        )
        make_directory(checkpoint.layout.offsets)
        make_directory(checkpoint.layout.commits)
        contexts = {
            uid: self.context(uid, checkpoint.incarnation, checkpoint.fence) for uid in UIDS
        }
        for context in contexts.values():
            make_directory(context.spool)
        return checkpoint, {
            uid: wrap(partial(travelled(self.sink).publisher, context))
            for uid, context in contexts.items()
        }


def committed(root: Path) -> dict[int, int]:
    """The durable epochs, and the fence of the start that ran each."""
    layout = Layout(root)
    return {epoch: int(layout.commit(epoch).read_text()) for epoch in logged_epochs(layout.commits)}


def _run(checkpoint: Checkpoint, epoch: int, ask: Ask, faults: Faults) -> Manifest:
    """The offset, then the tasks."""
    layout = checkpoint.layout
    faults.reach("K1", epoch)
    (layout.offsets / f".{epoch}.0.tmp").write_text("cut short")
    faults.reach("K2", epoch)
    if not layout.offset(epoch).exists():
        write_durably(layout.offset(epoch), b"planned")
    faults.reach("K3", epoch)
    receipts: list[Receipt] = []
    for task in range(TASKS):
        receipts += ask(epoch, task, checkpoint.incarnation, checkpoint.fence)
        if task == 0:
            faults.reach("K4", epoch)
    return Manifest(
        epoch=epoch,
        fence=checkpoint.fence,
        incarnation=checkpoint.incarnation,
        receipts=tuple(receipts),
        offsets_crc=crc_of(layout.offset(epoch)),
        commits_crc=crc_of(layout.commit(epoch - 1)),
        finished=epoch == len(EPOCHS) - 1,
    )


def _commit(checkpoint: Checkpoint, epoch: int) -> None:
    write_durably(checkpoint.layout.commit(epoch), str(checkpoint.fence).encode())
