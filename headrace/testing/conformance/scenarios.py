"""The kill table: what is done to a sink, scenario by scenario."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from headrace._commit.checkpoint import peek
from headrace._commit.faults import POINTS, Faults
from headrace._commit.manifest import list_manifests, read_manifest
from headrace._commit.paths import Layout
from headrace.endpoints import Publisher, Receipt, Sink
from headrace.testing.conformance.cluster import Cluster, How, last_words
from headrace.testing.conformance.kills import Crashed, Crashing
from headrace.testing.conformance.life import Job
from headrace.testing.conformance.script import UIDS, Expectation, Script
from headrace.testing.conformance.travel import elsewhere

__all__ = ["Bench", "Scenario", "scenarios"]

Scenario: TypeAlias = tuple[str, Callable[[], list[str]]]

#: A start that sleeps so long, and longer than one takes that waits for nobody, waits for a lock.
_BLOCKED_S = 1.0

_MEANING = {
    "K1": "before an epoch is planned",
    "K2": "while its plan is written",
    "K3": "behind its plan",
    "K4": "between its tasks",
    "K5": "behind all tasks, before the manifest",
    "K6": "behind the manifest",
    "K7": "before the commit",
    "K8": "durable, before the publication",
    "K9": "between two sinks",
    "K10": "published, not noted",
    "K11": "published by all, not noted",
}


@dataclass
class Bench:
    """What all scenarios of a check share."""

    sink: Sink
    script: Script
    read: Callable[[], Any]
    directory: Path
    ordered: bool
    patience_s: float
    #: How many places inside a method are tried.
    inside: int
    chance: random.Random
    made: list[Cluster] = field(default_factory=list)
    #: What a run that was not killed tells: lines and seconds of a publication.
    told: dict[str, Any] = field(default_factory=dict)

    def cluster(self) -> Cluster:
        """A new job on a checkpoint of its own."""
        root = self.directory / str(len(self.made))
        job = Job(root, self.sink, self.script.schema)
        cluster = Cluster(job, Expectation(self.script), self.read, self.patience_s)
        self.made.append(cluster)
        return cluster

    def verdict(self, cluster: Cluster) -> list[str]:
        return cluster.verdict(ordered=self.ordered)


def scenarios(bench: Bench) -> Iterator[Scenario]:
    """All of them; the first ones measure what later ones need."""
    yield "nothing is killed", partial(_nothing, bench)
    yield "the checkpoint is deleted and all is run again", partial(_again, bench)
    for point in POINTS:
        name = f"crashed at {point} and left alive, which publishes later"
        yield name, partial(_left_alive, bench, point)
    for lost in ("lost", "killed", "aborted"):
        yield f"the first attempt of every task is {lost}", partial(_stumbling, bench, lost)
    yield "sinks and jobs discard what is staged for them", partial(_foreign, bench)
    for line, place in _spread(bench.told.get("lines", []), bench.inside):
        yield f"killed before {place} in publish", partial(_killed, bench, [How(line=line)])
    for point in POINTS:
        yield f"killed at {point}, {_MEANING[point]}", partial(_killed, bench, [How(point)])
    for first, second in (("K8", "K10"), ("K10", "K10"), ("K11", "K8"), ("K6", "K11")):
        name = f"killed at {first}, and at {second} of the start behind it"
        yield name, partial(_killed, bench, [How(first), How(second)])
    yield from _inside(bench)


def _inside(bench: Bench) -> Iterator[Scenario]:
    """Between the lines of its other methods, and at random instants."""
    some = bench.inside // 3
    # As many as it is killed at: one that was woken up late is wrong only between its question and its answer.
    for line, place in _spread(bench.told.get("lines", []), bench.inside):
        yield f"a driver hangs before {place} in publish", partial(_hanging, bench, line)
    for line, place in _spread(_lines_of_recovery(bench), some):
        kills = [How("K8"), How(line=line, recovering=True)]
        yield f"killed before {place} in a recovery", partial(_killed, bench, kills)
    for line, place in _spread(bench.cluster().lines_of_a_task(), some):
        yield f"tasks killed before {place}", partial(_stumbling, bench, line)
    for _ in range(some):
        after_s = bench.chance.uniform(0, 1.5 * bench.told.get("published", 0.001))
        name = f"killed {after_s * 1000:.2f} ms into publish"
        yield name, partial(_killed, bench, [How(after_s=after_s)])


def _nothing(bench: Bench) -> list[str]:
    cluster = bench.cluster()
    cluster.watched = True
    outcome = cluster.live(How(line=0))
    bench.told = outcome.told
    if not outcome.ended:
        cluster.problems.append(f"the job failed: {last_words(outcome.error)}")
    return bench.verdict(cluster)


def _again(bench: Bench) -> list[str]:
    first, second = bench.cluster(), bench.cluster()
    first.finish()
    found = bench.verdict(first)
    shutil.rmtree(first.job.root)
    first.job.root.mkdir(mode=0o700)
    second.finish()
    return found + bench.verdict(second)


def _killed(bench: Bench, kills: list[How]) -> list[str]:
    cluster = bench.cluster()
    for number, how in enumerate(kills):
        outcome = cluster.live(how)
        if outcome.ended and how.point is not None and number == 0:
            cluster.problems.append(f"{how.point} was not reached")
        if outcome.error is not None:
            cluster.problems.append(f"the job failed by itself: {last_words(outcome.error)}")
    cluster.finish()
    return bench.verdict(cluster)


def _stumbling(bench: Bench, how: str | int) -> list[str]:
    cluster = bench.cluster()
    cluster.stumble = how
    cluster.live(How("K8"))
    cluster.finish()
    return bench.verdict(cluster)


def _hanging(bench: Bench, line: int) -> list[str]:
    """The next start does not know that the last one still lives; in the end both have published."""
    cluster, began = bench.cluster(), time.monotonic()
    first = cluster.live(How(line=line, signal=signal.SIGSTOP))
    if first.error is not None:
        cluster.problems.append(f"the job failed by itself: {last_words(first.error)}")
    if first.stopped is not None:
        # It may hold a lock that the next one waits for; then that one is given up. If not, the next one publishes and
        # is killed before it tidies up: what was staged is still there for the one that wakes up.
        asleep_s = max(_BLOCKED_S, 3 * (time.monotonic() - began))
        cluster.live(How("K11"), asleep_s=asleep_s)
        cluster.bury(first.stopped)
    cluster.finish()
    return bench.verdict(cluster)


def _foreign(bench: Bench) -> list[str]:
    """Rows that wait to be published, while another job and another sink discard theirs."""
    waiting, other = bench.cluster(), bench.cluster()
    waiting.live(How("K8"))
    other.finish()
    elsewhere(partial(_discard_all, waiting.job, other.job))
    waiting.finish()
    return bench.verdict(waiting) + bench.verdict(other)


def _discard_all(waiting: Job, other: Job) -> None:
    record = peek(waiting.root)
    assert record is not None
    contexts = [
        waiting.context("another", record.incarnation, 1),
        other.context(UIDS[0], "f" * 32, 1),
    ]
    for context in contexts:
        publisher = waiting.sink.publisher(context)
        publisher.discard(frozenset())
        publisher.close()


def _left_alive(bench: Bench, point: str) -> list[str]:
    """A run ends by an exception that nobody catches; its publishers wake up behind the end of the next."""
    cluster = bench.cluster()
    zombies: dict[str, Publisher] = {}
    try:
        cluster.job.live_here(cluster.ask_here(), Crashing(point, 1), zombies)
    except Crashed:
        pass
    else:
        cluster.problems.append(f"{point} was not reached")
    later: dict[str, Publisher] = {}
    cluster.job.live_here(cluster.ask_here(), Faults(), later)
    for uid, publisher in zombies.items():
        _publish_late(cluster, uid, publisher)
    for publisher in [*zombies.values(), *later.values()]:
        _close(publisher)
    return bench.verdict(cluster)


def _publish_late(cluster: Cluster, uid: str, publisher: Publisher) -> None:
    layout = Layout(cluster.job.root)
    for epoch in list_manifests(layout):
        manifest = read_manifest(layout, epoch)
        receipts: tuple[Receipt, ...] = () if manifest is None else manifest.receipts_of(uid)
        try:
            publisher.publish(epoch, receipts)
        except Exception:  # noqa: BLE001 - to be refused is as good as to do nothing
            return


def _close(publisher: Publisher) -> None:
    try:
        publisher.close()
    except Exception:  # noqa: BLE001 - it has been refused, or is closed already
        return


def _lines_of_recovery(bench: Bench) -> list[str]:
    cluster = bench.cluster()
    cluster.live(How("K8"))
    reached: list[str] = cluster.live(How(line=0, recovering=True)).told.get("lines", [])
    return reached


def _spread(places: list[str], limit: int) -> list[tuple[int, str]]:
    """Each place when it is first reached and when it is last reached; evenly some, if these are too many."""
    counted = list(enumerate(places, start=1))
    chosen = {place: line for line, place in reversed(counted)}.items()
    ends = {place: line for line, place in counted}.items()
    lines = sorted({(line, place) for place, line in [*chosen, *ends]})
    if len(lines) <= limit:
        return lines
    return [lines[round(n * (len(lines) - 1) / max(limit - 1, 1))] for n in range(limit)]
