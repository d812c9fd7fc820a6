"""Opening a checkpoint: whose it is, whether this job may use it, and the fence of this start.

`prepare`, `peek` and `usable` need no lease and change nothing that another run relies on. `Checkpoint.open` must
be called by the holder of the lease: it writes `job.json` at the first start and a new fence at every one.
"""

from __future__ import annotations

import os
import re
import stat
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace._commit import published
from headrace._commit.files import make_directory, read_record, remove_leftovers, write_record
from headrace._commit.manifest import Manifest, list_manifests, read_manifest
from headrace._commit.paths import ENTRIES, Layout
from headrace.endpoints import Json
from headrace.errors import CheckpointDamaged, CheckpointError, CheckpointMismatch

__all__ = [
    "FORMAT",
    "Checkpoint",
    "JobRecord",
    "durable_epoch",
    "logged_epochs",
    "peek",
    "prepare",
    "usable",
]

#: Of the files that this package writes. A checkpoint of another format is refused.
FORMAT = 1

Describe = Callable[[Mapping[str, Any], Mapping[str, Any]], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """What `job.json` says."""

    job: str
    incarnation: str
    shards: int
    digest: str
    signature: Mapping[str, Json]
    #: At the first start; for people, except `format`.
    versions: Mapping[str, str]
    format: int = FORMAT
    #: Where the state that functions declare lies, for those who read it without the graph.
    states: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that this run may write."""

    layout: Layout
    record: JobRecord
    #: Of this start; higher than that of every start before.
    fence: int

    @staticmethod
    def open(
        root: str | Path,
        *,
        job: str,
        signature: Mapping[str, Json],
        digest: str,
        shards: int | None,
        default_shards: int,
        versions: Mapping[str, str],
        states: Mapping[str, Json] | None = None,
        describe: Describe | None = None,
    ) -> Checkpoint:
        """Create or verify the checkpoint and begin a new start. Call it under the lease only."""
        layout = prepare(root)
        record = usable(
            layout, job=job, signature=signature, digest=digest, shards=shards, describe=describe
        )
        if record is None:
            record = JobRecord(
                job=job,
                incarnation=uuid.uuid4().hex,
                shards=shards or default_shards,
                digest=digest,
                signature=signature,
                versions=versions,
                states=states or {},
            )
            write_record(layout.job, vars(record))
        _make_directories(layout)
        return Checkpoint(layout, record, _next_fence(layout))

    @property
    def incarnation(self) -> str:
        return self.record.incarnation

    @property
    def shards(self) -> int:
        return self.record.shards

    def manifest(self, epoch: int) -> Manifest | None:
        """The true manifest of an epoch."""
        return read_manifest(self.layout, epoch)

    def manifests(self) -> dict[int, tuple[int, ...]]:
        """The fences of each epoch that has a manifest."""
        return list_manifests(self.layout)

    def progress(self) -> published.Progress:
        """How far each sink is."""
        return published.read_progress(self.layout)


def prepare(root: str | Path) -> Layout:
    """Make sure that the directory can hold a checkpoint and is safe to use; fails at once if not."""
    text = os.fspath(root)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        raise CheckpointError(
            f"checkpoint {text!r} is not a local path; checkpoints on other file systems are not"
            " supported yet: use a directory of this machine"
        )
    path = Path(text).expanduser().absolute()
    try:
        make_directory(path)
    except OSError as error:
        raise CheckpointError(f"cannot create the checkpoint {path}: {error.strerror}") from error
    path = path.resolve()
    _check_modes(path)
    _check_entries(path)
    return Layout(path)


def usable(
    layout: Layout,
    *,
    job: str,
    signature: Mapping[str, Json],
    digest: str,
    shards: int | None,
    describe: Describe | None = None,
) -> JobRecord | None:
    """What the checkpoint says of its job, or None before the first start; raises if it is not this one.

    Needs no lease, so a start that cannot work fails before it costs anything.
    """
    record = peek(layout.root)
    if record is None:
        return None
    if record.job != job:
        raise CheckpointMismatch(
            f"checkpoint {layout.root} belongs to the job {record.job!r}, not to {job!r};"
            " every job needs a checkpoint of its own"
        )
    if record.digest != digest:
        changes = describe(record.signature, signature) if describe else []
        raise CheckpointMismatch(
            f"checkpoint {layout.root} was written by another graph of the job {record.job!r}: "
            + ("; ".join(changes) or "its sources, keyed steps or sinks are not the same")
            + ". Undo the change or start with a new checkpoint"
        )
    if shards is not None and shards != record.shards:
        raise CheckpointMismatch(
            f"checkpoint {layout.root} has {record.shards} shards and cannot be run with {shards};"
            f" leave shards out or say shards={record.shards}"
        )
    return record


def peek(root: str | Path) -> JobRecord | None:
    """What the checkpoint says of its job, without a lease; None before the first start."""
    layout = Layout(Path(root).expanduser().absolute())
    if not layout.job.exists():
        if _has_history(layout):
            raise CheckpointDamaged(f"{layout.job} is missing, but the checkpoint has epochs")
        return None
    body = read_record(layout.job)
    found = body.get("format")
    if found != FORMAT:
        raise CheckpointMismatch(
            f"checkpoint {layout.root} has format {found}; this version of Headrace reads format"
            f" {FORMAT}: run the version that wrote it ({body.get('versions')})"
        )
    try:
        return JobRecord(**body)
    except TypeError as error:
        raise CheckpointDamaged(f"{layout.job} is not readable: {error}") from error


def durable_epoch(layout: Layout) -> int:
    """The highest commit of Spark; -1 if there is none. Older ones may be purged already."""
    return max(logged_epochs(layout.commits), default=-1)


def logged_epochs(directory: Path) -> tuple[int, ...]:
    """The epochs that one of Spark's logs holds, ascending."""
    if not directory.is_dir():
        return ()
    names = (path.name for path in directory.iterdir())
    return tuple(sorted(int(name) for name in names if name.isdigit()))


def _has_history(layout: Layout) -> bool:
    return bool(list_manifests(layout)) or layout.published.exists() or durable_epoch(layout) >= 0


def _check_modes(path: Path) -> None:
    if not path.is_dir():
        raise CheckpointError(f"checkpoint {path} is not a directory")
    if path.stat().st_mode & stat.S_IWOTH:
        raise CheckpointError(
            f"checkpoint {path} may be written by every user of this machine; run: chmod 700 {path}"
        )
    parent = path.parent.stat().st_mode
    if parent & stat.S_IWOTH and not parent & stat.S_ISVTX:
        raise CheckpointError(
            f"{path.parent} may be written by every user of this machine, who could replace the"
            " checkpoint in it; choose another directory"
        )
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise CheckpointError(f"checkpoint {path} may not be written by this user")
    if path.stat().st_uid == os.geteuid():
        path.chmod(0o700)
    probe = path / f".probe-{uuid.uuid4().hex}"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CheckpointError(f"checkpoint {path} cannot be written: {error.strerror}") from error


def _check_entries(path: Path) -> None:
    strangers = sorted({entry.name for entry in path.iterdir()} - ENTRIES)
    strangers = [name for name in strangers if not name.startswith(".")]
    if strangers and not (path / "job.json").exists():
        raise CheckpointError(
            f"{path} is no checkpoint and is not empty (it holds {', '.join(strangers[:3])});"
            " give a directory of its own"
        )


def _make_directories(layout: Layout) -> None:
    for path in (layout.manifests, layout.root / "sources", layout.root / "spool"):
        make_directory(path)
    remove_leftovers(layout.root)
    remove_leftovers(layout.manifests)


def _next_fence(layout: Layout) -> int:
    last = int(read_record(layout.fence)["fence"]) if layout.fence.exists() else 0
    written = (max(fences) for fences in list_manifests(layout).values())
    fence = max(last, *written, 0) + 1
    write_record(layout.fence, {"fence": fence})
    return fence
