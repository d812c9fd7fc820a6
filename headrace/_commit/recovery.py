"""Recovery: gather the facts of a checkpoint, let `protocol.decide` judge them, carry out its actions.

Runs at every start, under the lease, before Spark reads a row. It publishes what is durable, removes what
is not, and refuses when the facts do not fit together. It can be cut short and run again at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace._commit.checkpoint import Checkpoint, logged_epochs
from headrace._commit.faults import Faults
from headrace._commit.files import crc_of, remove
from headrace._commit.manifest import Manifest, read_fenced
from headrace._commit.protocol import (
    DiscardStaged,
    DropManifest,
    Publish,
    RecordShown,
    RecoveryFacts,
    Refuse,
    decide,
)
from headrace._commit.publication import Publication
from headrace.endpoints import Publisher
from headrace.errors import CheckpointDamaged

__all__ = ["Recovered", "gather", "opened_publishers", "recover"]


@dataclass(frozen=True)
class Recovered:
    """Where a start goes on."""

    #: The last durable epoch, -1 if there is none; all of it is handed to the sinks now.
    durable: int
    #: The manifest of that epoch.
    manifest: Manifest | None
    #: Epochs that recovery published because the last run did not get to it.
    published: tuple[int, ...]

    @property
    def finished(self) -> bool:
        """The job has ended in an earlier run."""
        return self.manifest is not None and self.manifest.finished


@contextmanager
def opened_publishers(
    openers: Mapping[str, Callable[[], Publisher]],
) -> Iterator[dict[str, Publisher]]:
    """The publishers of a start. If the start fails they are closed; if not, they are the committer's to close."""
    with ExitStack() as opened:
        publishers: dict[str, Publisher] = {}
        for sink, opener in openers.items():
            publishers[sink] = opener()
            opened.callback(publishers[sink].close)
        yield publishers
        opened.pop_all()


def gather(checkpoint: Checkpoint, publishers: Mapping[str, Publisher]) -> RecoveryFacts:
    """The facts, checksums compared."""
    layout = checkpoint.layout
    progress = checkpoint.progress()
    return RecoveryFacts(
        sinks=tuple(publishers),
        offsets=logged_epochs(layout.offsets),
        commits=logged_epochs(layout.commits),
        manifests=checkpoint.manifests(),
        shown=progress.shown,
        settled=progress.settled,
        outside={sink: publisher.published() for sink, publisher in publishers.items()},
        seen={sink: publisher.highest_seen() for sink, publisher in publishers.items()},
        known_durable=progress.durable,
        altered=tuple(_altered(checkpoint)),
    )


def recover(
    checkpoint: Checkpoint,
    publishers: Mapping[str, Publisher],
    *,
    faults: Faults | None = None,
    held: Callable[[], bool] = lambda: True,
) -> Recovered:
    """Bring sinks and staged data in line with what is durable, or raise `CheckpointDamaged`."""
    facts = gather(checkpoint, publishers)
    publication = Publication(
        checkpoint, publishers, faults=faults or Faults(), held=held, recovering=True
    )
    due: dict[int, list[str]] = {}
    for action in decide(facts):
        match action:
            case Refuse(reason):
                raise CheckpointDamaged(f"checkpoint {checkpoint.layout.root}: {reason}")
            case DropManifest(epoch, fence):
                remove(checkpoint.layout.manifest(epoch, fence))
            case DiscardStaged(sink, keep):
                publishers[sink].discard(keep)
            case RecordShown(epoch, sink):
                publication.record_shown(sink, epoch)
            case Publish(epoch, sink):
                due.setdefault(epoch, []).append(sink)
    for epoch, sinks in sorted(due.items()):
        publication.publish(_true_manifest(checkpoint, facts, epoch), sinks)
    if facts.durable < 0:
        return Recovered(-1, None, ())
    manifest = _true_manifest(checkpoint, facts, facts.durable)
    publication.note(facts.durable)
    return Recovered(facts.durable, manifest, tuple(sorted(due)))


def _true_manifest(checkpoint: Checkpoint, facts: RecoveryFacts, epoch: int) -> Manifest:
    # `decide` has refused if one that we ask for is missing.
    manifest = read_fenced(checkpoint.layout, epoch, max(facts.manifests[epoch]))
    if manifest.incarnation != checkpoint.incarnation:
        path = checkpoint.layout.manifest(epoch, manifest.fence)
        raise CheckpointDamaged(f"{path} belongs to another checkpoint")
    return manifest


def _altered(checkpoint: Checkpoint) -> Iterator[str]:
    """Files of Spark's logs that are not what a manifest says they were."""
    layout = checkpoint.layout
    progress = checkpoint.progress()
    yield from _compare(layout.commit(progress.durable), progress.commit_crc)
    for epoch, fences in checkpoint.manifests().items():
        manifest = read_fenced(layout, epoch, max(fences))
        yield from _compare(layout.offset(epoch), manifest.offsets_crc)
        yield from _compare(layout.commit(epoch - 1), manifest.commits_crc)


def _compare(path: Path, expected: int | None) -> Iterator[str]:
    found = crc_of(path)
    # An absent file may be purged; `decide` knows which must be there.
    if expected is not None and found is not None and found != expected:
        yield f"{path} does not match the checksum that was written down for it"
