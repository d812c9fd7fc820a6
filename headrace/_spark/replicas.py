"""Where replicas of state lie on this host, and how a task gets the one of its shard."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._runtime.state import ChunkStore, ShardState, TableSpec
from headrace._runtime.state.replica import MappedArrays, hold, open_replica, release, sweep
from headrace.keys import groups_of

if TYPE_CHECKING:
    from headrace._spark.worker import Job

__all__ = ["Replica", "drop_replicas", "replica_roots"]

_MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - the directory in it is ours alone, mode 0700


class Replica:
    """A shard's state for one epoch; `release` lets other workers have the shard."""

    def __init__(
        self, job: Job, uid: str, shard: int, specs: Sequence[TableSpec], store: ChunkStore
    ):
        memory, disk = (Path(root) for root in job.spec.replicas)
        self._arrays = open_replica(
            memory, job.spec.incarnation, operator=uid, shard=shard, fallback=disk
        )
        groups = groups_of(shard, job.plan.shards)
        self.state = ShardState(specs, store, arrays=self._arrays, groups=groups)
        self.state.open()

    def release(self) -> None:
        """Unlock."""
        if isinstance(self._arrays, MappedArrays):
            self._arrays.close()


def drop_replicas(job: Job) -> None:
    """The job is finished: nobody will ask for its state again."""
    for root in set(job.spec.replicas):
        release(Path(root), job.spec.incarnation, remove=True)


def replica_roots(incarnation: str) -> tuple[str, str]:
    """(best place, second place) for this user's replicas; sweeps what dead jobs left there."""
    name = f"headrace-{os.geteuid()}"
    disk = Path(tempfile.gettempdir()) / name
    memory = Path(os.environ.get("HEADRACE_REPLICAS") or _MEMORY_DISK)
    roots = (memory / name if memory.is_dir() and os.access(memory, os.W_OK) else disk, disk)
    for root in set(roots):
        hold(root, incarnation)
        sweep(root, keep=incarnation)
    return str(roots[0]), str(roots[1])
