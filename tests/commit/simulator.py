"""A fake world around the real `_commit` code: kill it at any step, start it again, count the rows.

The checkpoint is real files; Spark's batch loop, the state store and the sinks are small models. User code is
not deterministic: every run of an epoch marks its rows with a new attempt. `Killed` is raised at a chosen step:
a step is every rename, fsync and removal of a file, every kill point, and every act of a model. What a model
keeps in `Outside` survives, what it keeps elsewhere is gone, as with a killed process.
"""

import itertools
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

from headrace._commit.checkpoint import Checkpoint
from headrace._commit.faults import Faults
from headrace._commit.files import crc_of, write_durably
from headrace._commit.manifest import Manifest, write_manifest
from headrace._commit.publication import Publication
from headrace._commit.recovery import recover
from headrace.endpoints import Publisher, Receipt
from headrace.errors import SinkError

Row = tuple[int, str]
T = TypeVar("T")


class Killed(BaseException):
    """kill -9: nothing may catch it."""


@dataclass
class Clockwork:
    """Counts steps and kills at one of them."""

    kill_at: int | None = None
    taken: int = 0

    def step(self, *_: object) -> None:
        self.taken += 1
        if self.taken == self.kill_at:
            raise Killed


@dataclass
class Outside:
    """What the systems outside hold: it survives every kill."""

    staged: dict[tuple[str, int, str], tuple[Row, ...]] = field(default_factory=dict)
    visible: dict[str, dict[str, tuple[Row, ...]]] = field(default_factory=dict)
    markers: dict[str, int] = field(default_factory=dict)


class SteppedFaults(Faults):
    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork = clockwork

    def reach(self, point: str, epoch: int) -> None:
        self._clockwork.step()


class Folder(Publisher):
    """Renames staged files one by one; a name that is there already is done."""

    def __init__(self, world: "World", uid: str) -> None:
        self.world, self.uid = world, uid
        self.outside, self.step = world.outside, world.clockwork.step

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        shown = self.outside.visible.setdefault(self.uid, {})
        for receipt in receipts:
            name = f"{epoch}-{receipt.path}"
            self.step()
            if name not in shown:
                shown[name] = self.outside.staged.pop((self.uid, epoch, receipt.path))

    def discard(self, keep: frozenset[int]) -> None:
        for key in [k for k in self.outside.staged if k[0] == self.uid and k[1] not in keep]:
            self.step()
            del self.outside.staged[key]


class RollingFolder(Folder):
    """Holds epochs back in memory and shows two or three of them as one file."""

    def __init__(self, world: "World", uid: str) -> None:
        super().__init__(world, uid)
        self.held: dict[int, Sequence[Receipt]] = {}
        self.done = -1

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        shown = self.outside.visible.setdefault(self.uid, {})
        for name in shown:
            first, last = map(int, name.split("-"))
            if first <= epoch <= last:
                self.done = max(self.done, epoch)
                self._remove(epoch, receipts)
                return
        self.held[epoch] = receipts
        if len(self.held) >= self.world.rng.choice([2, 3]):
            self.flush()

    def flush(self) -> None:
        if not self.held:
            return
        rows = [
            row
            for epoch, receipts in self.held.items()
            for receipt in receipts
            for row in self.outside.staged[self.uid, epoch, receipt.path]
        ]
        self.step()
        name = f"{min(self.held)}-{max(self.held)}"
        self.outside.visible.setdefault(self.uid, {})[name] = tuple(rows)
        self.step()
        for epoch, receipts in self.held.items():
            self._remove(epoch, receipts)
        self.done, self.held = max(self.held), {}

    def settled(self) -> int:
        return self.done

    def _remove(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        for receipt in receipts:
            self.step()
            self.outside.staged.pop((self.uid, epoch, receipt.path), None)


class Database(Publisher):
    """One transaction an epoch with a marker in it; sometimes away, sometimes its reply is lost."""

    def __init__(self, world: "World", uid: str) -> None:
        self.world, self.uid = world, uid
        self.outside, self.step = world.outside, world.clockwork.step

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        if self.world.rng.random() < self.world.outage:
            raise SinkError("the database is away")
        if self.outside.markers.get(self.uid, -1) < epoch:
            keys = [(self.uid, epoch, receipt.path) for receipt in receipts]
            rows = tuple(row for key in keys for row in self.outside.staged[key])
            self.step()
            self.outside.visible.setdefault(self.uid, {})[str(epoch)] = rows
            self.outside.markers[self.uid] = epoch
            self.step()
        if self.world.rng.random() < self.world.outage:
            raise SinkError("the reply was lost")
        self._remove(epoch)

    def published(self) -> int | None:
        return self.outside.markers.get(self.uid)

    def discard(self, keep: frozenset[int]) -> None:
        for key in [k for k in self.outside.staged if k[0] == self.uid and k[1] not in keep]:
            self.step()
            del self.outside.staged[key]

    def _remove(self, epoch: int) -> None:
        for key in [k for k in self.outside.staged if k[:2] == (self.uid, epoch)]:
            self.step()
            del self.outside.staged[key]


SINKS: Mapping[str, Callable[["World", str], Publisher]] = {
    "files": Folder,
    "rolled": RollingFolder,
    "table": Database,
}


class World:
    """One job with `rows` input rows, from its first start to its end, however many lives that takes."""

    def __init__(self, root: Path, seed: int, *, rows: int = 12, outage: float = 0.1) -> None:
        self.root, self.rows, self.outage = root, rows, outage
        self.rng = random.Random(seed)
        self.attempts = itertools.count()
        self.outside = Outside()
        self.clockwork = Clockwork()
        self.kills = 0

    def live(self, kill_at: int | None = None) -> bool:
        """One start; True if it came to its end."""
        self.clockwork = Clockwork(kill_at)
        try:
            with stepping(self.clockwork):
                self._run()
        except Killed:
            self.kills += 1
            return False
        return True

    def _run(self) -> None:
        checkpoint = Checkpoint.open(
            self.root,
            job="sim",
            signature={},
            digest="d",
            shards=None,
            default_shards=1,
            versions={},
        )
        publishers = {uid: make(self, uid) for uid, make in SINKS.items()}
        faults = SteppedFaults(self.clockwork)
        recovered = self._persist(lambda: recover(checkpoint, publishers, faults=faults))
        publication = Publication(checkpoint, publishers, faults=faults)
        waiting: list[Manifest] = []
        epoch, finished = recovered.durable + 1, recovered.finished
        while not finished:
            manifest = self._epoch(checkpoint, epoch)
            waiting.append(manifest)
            finished, epoch = manifest.finished, epoch + 1
            while waiting and (finished or self.rng.random() < 0.7):
                self._persist(lambda: publication.publish(waiting[0]))
                waiting.pop(0)
        publication.flush()

    def _persist(self, act: Callable[[], T]) -> T:
        """Ask again while a system outside is away, as the committer's thread does."""
        while True:
            try:
                return act()
            except SinkError:
                self.clockwork.step()

    def _epoch(self, checkpoint: Checkpoint, epoch: int) -> Manifest:
        """What Spark does: offsets, tasks, foreachBatch, commits."""
        layout, step = checkpoint.layout, self.clockwork.step
        if not layout.offset(epoch).exists():
            layout.offsets.mkdir(parents=True, exist_ok=True)
            begin = 0 if epoch == 0 else int(layout.offset(epoch - 1).read_text().split()[1])
            end = min(self.rows, begin + self.rng.randint(0, 4))
            write_durably(layout.offset(epoch), f"{begin} {end}".encode())
        begin, end = map(int, layout.offset(epoch).read_text().split())
        attempt = str(next(self.attempts))
        receipts = []
        for uid, part in itertools.product(SINKS, (0, 1)):
            path, rows = (
                f"{attempt}-{part}",
                tuple((n, attempt) for n in range(begin, end) if n % 2 == part),
            )
            step()
            if rows:
                self.outside.staged[uid, epoch, path] = rows
                receipts.append(Receipt(uid, path, len(rows), 0, 0))
        manifest = Manifest(
            epoch=epoch,
            fence=checkpoint.fence,
            incarnation=checkpoint.incarnation,
            receipts=tuple(receipts),
            stamps={"step": {"0": attempt}},
            offsets_crc=crc_of(layout.offset(epoch)),
            commits_crc=crc_of(layout.commit(epoch - 1)),
            finished=begin == end == self.rows,
        )
        write_manifest(layout, manifest)
        step()
        layout.commits.mkdir(parents=True, exist_ok=True)
        write_durably(layout.commit(epoch), attempt.encode())
        step()
        return manifest

    def faults_found(self) -> list[str]:
        """Lost, doubled, foreign or left-over rows: independent of how they came to be."""
        attempts = {
            int(p.name): p.read_text()
            for p in (self.root / "spark/commits").iterdir()
            if p.name.isdigit()
        }
        durable = {}
        for epoch, attempt in attempts.items():
            begin, end = map(int, (self.root / f"spark/offsets/{epoch}").read_text().split())
            durable |= dict.fromkeys(range(begin, end), attempt)
        found = []
        for uid in SINKS:
            rows = [row for part in self.outside.visible.get(uid, {}).values() for row in part]
            numbers = [number for number, _ in rows]
            found += [f"{uid}: lost {n}" for n in range(self.rows) if n not in numbers]
            found += [f"{uid}: doubled {n}" for n in set(numbers) if numbers.count(n) > 1]
            found += [f"{uid}: {n} of another attempt" for n, a in rows if durable.get(n) != a]
        return found + [f"left staged: {key}" for key in self.outside.staged]


@contextmanager
def stepping(clockwork: Clockwork) -> Iterator[None]:
    """Every rename, removal and fsync is a step; a kill comes before it or behind it."""
    rename, unlink = Path.replace, Path.unlink

    def stepped_rename(path: Path, target: Path) -> Path:
        clockwork.step()
        result = rename(path, target)
        clockwork.step()
        return result

    def stepped_unlink(path: Path, missing_ok: bool = False) -> None:
        clockwork.step()
        unlink(path, missing_ok)

    with (
        patch.object(Path, "replace", stepped_rename),
        patch.object(Path, "unlink", stepped_unlink),
        patch.object(os, "fsync", clockwork.step),
    ):
        yield
