"""Where everything of a checkpoint lies. Names only: nothing here touches the disk.

job.json                         who the checkpoint belongs to, its incarnation and shards
lease                            locked by the run that may write
fence                            the number of the last start
control.json                     what the planner is asked to do: run, stop or drain
stopped                          the planner has seen that it is to stop
notices                          what the planner and the workers warn of
manifests/<epoch>-<fence>.json   what an epoch did
published.json                   how far each sink is
sources/<uid>/                   a source's own durable notes
spool/<uid>/                     rows staged for sinks without a staging area of their own
spark/                           Spark's checkpoint: offsets/N, commits/N, state
spark.log                        what Spark and the workers print
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

__all__ = ["ENTRIES", "Layout", "manifest_name", "parse_manifest_name", "safe_name"]

#: Every name that a checkpoint may have at its top.
ENTRIES = frozenset(
    {
        "job.json",
        "lease",
        "fence",
        "control.json",
        "stopped",
        "notices",
        "manifests",
        "published.json",
        "sources",
        "spool",
        "spark",
        "spark.log",
    }
)

_MANIFEST = re.compile(r"(\d{12,})-(\d{6,})\.json")
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of the checkpoint at `root`. Cheap to make again in another process."""

    root: Path

    @property
    def job(self) -> Path:
        return self.root / "job.json"

    @property
    def lease(self) -> Path:
        return self.root / "lease"

    @property
    def fence(self) -> Path:
        return self.root / "fence"

    @property
    def control(self) -> Path:
        return self.root / "control.json"

    @property
    def stopped(self) -> Path:
        return self.root / "stopped"

    @property
    def notices(self) -> Path:
        return self.root / "notices"

    @property
    def manifests(self) -> Path:
        return self.root / "manifests"

    @property
    def published(self) -> Path:
        return self.root / "published.json"

    @property
    def spark(self) -> Path:
        return self.root / "spark"

    @property
    def log(self) -> Path:
        return self.root / "spark.log"

    @property
    def offsets(self) -> Path:
        return self.spark / "offsets"

    @property
    def commits(self) -> Path:
        return self.spark / "commits"

    def manifest(self, epoch: int, fence: int) -> Path:
        return self.manifests / manifest_name(epoch, fence)

    def offset(self, epoch: int) -> Path:
        return self.offsets / str(epoch)

    def commit(self, epoch: int) -> Path:
        return self.commits / str(epoch)

    def source(self, uid: str) -> Path:
        return self.root / "sources" / safe_name(uid)

    def spool(self, uid: str) -> Path:
        return self.root / "spool" / safe_name(uid)


def manifest_name(epoch: int, fence: int) -> str:
    """Names sort by epoch, then by fence."""
    return f"{epoch:012d}-{fence:06d}.json"


def parse_manifest_name(name: str) -> tuple[int, int] | None:
    """(epoch, fence), or None for a file that is not a manifest."""
    match = _MANIFEST.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]))


def safe_name(uid: str) -> str:
    """A file name for any uid; different uids have different names."""
    name = quote(uid, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:60]}~{hashlib.sha256(uid.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
