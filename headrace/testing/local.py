"""`run_local`: a pipeline in this process, without Spark, and with crashes where a test wants them.

The planner, the operators, state, sources and sinks are those of a job on Spark; only tasks and logs are
in memory. Everything about time is decided by the epochs' cuts and by a clock that moves with them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from headrace._epochs.offset import Offset
from headrace._graph.plan import Plan
from headrace._local.job import CrashPoint, LocalCrash, LocalJob
from headrace._local.memory import Stores
from headrace._runtime.histogram import Distribution
from headrace._runtime.metrics import readings
from headrace._runtime.process.reads.tables import find_place, recorded_places, state_table
from headrace.config import Epochs, to_us
from headrace.environment import Environment
from headrace.errors import HeadraceError
from headrace.testing.memory_disk import memory_disk
from headrace.watermarks import NO_WATERMARK

__all__ = ["LocalEpoch", "LocalResult", "run_local"]


@dataclass(frozen=True, slots=True)
class LocalEpoch:
    """One epoch as it was cut: what an oracle must be given to know the right answer."""

    number: int
    #: source uid -> partition -> (first position, one past the last position)
    ranges: Mapping[str, Mapping[str, tuple[int, int]]]
    #: In microseconds, the watermarks of the epoch before and of this one: by uid of sources and of steps
    #: that assign timestamps; "@clock"; and "a+b" of a step that several feed.
    before: Mapping[str, int]
    watermarks: Mapping[str, int]
    clock_us: int
    #: `NO_WATERMARK` in the first epoch.
    clock_before_us: int = NO_WATERMARK


@dataclass(frozen=True, slots=True)
class LocalResult:
    """What a local run did. The rows are where the sinks put them."""

    epochs: tuple[LocalEpoch, ...]
    #: uid -> "in", "out", "late", "filtered", "dead" -> rows
    counts: Mapping[str, Mapping[str, int]]
    #: How often the job began anew, after crashes and failures.
    restarts: int
    #: The input was bounded and is exhausted.
    finished: bool
    #: By uid of sources and of steps that assign timestamps.
    watermarks: Mapping[str, int] = field(default_factory=dict)
    #: uid -> name -> what functions counted with `ctx.metrics`, as `JobHandle.metrics` has it.
    metrics: Mapping[str, Mapping[str, int | float | Distribution]] = field(default_factory=dict)
    _plan: Plan | None = field(default=None, repr=False, compare=False)
    _logs: Stores = field(default_factory=dict, repr=False, compare=False)

    def read_state(self, uid: str, name: str) -> pa.Table:
        """The state that a process function keeps under a name at the end of the run, as `hr.read_state` has it."""
        assert self._plan is not None
        _, place = find_place(recorded_places(self._plan), uid, name)
        shards = [shard for step, shard in self._logs if step == uid]
        return state_table(place, [self._logs[uid, shard] for shard in sorted(shards)])


def run_local(
    env: Environment,
    shards: int | None = None,
    *,
    epochs: Epochs | None = None,
    tasks: int = 1,
    crashes: Iterable[tuple[int, CrashPoint]] = (),
    rescale: Mapping[int, int] | None = None,
    attempts: int = 3,
    step: timedelta = timedelta(seconds=1),
    wait: timedelta = timedelta(0),
) -> LocalResult:
    """Run a pipeline until its input is exhausted or nothing more is to do.

    `tasks` is how many tasks read each epoch. `crashes` are points at which the "process" dies, as (epoch,
    point); the job restarts at once. `rescale` maps an epoch to the number of shards that it and those
    after it have. An error that a retry may help is retried until an epoch has failed `attempts` times. The
    clock begins at the present and moves by `step` with every epoch. When nothing is left to read it goes on
    for `wait`, in such steps or to the next instant that a step waits for; then the run ends. Bounded input
    ends at once: to let timers by the clock fire, use a source that is not, such as MemorySource(..., bounded=False).
    """
    with tempfile.TemporaryDirectory(prefix="headrace-", dir=memory_disk()) as directory:
        clock = _Clock(
            time.time_ns() // 1000, to_us(step, "step"), to_us(wait, "wait", positive=False)
        )
        job = LocalJob(
            env.plan(shards=shards),
            Path(directory),
            epochs or env.epochs,
            clock.now_us,
            tasks=tasks,
            crashes=set(crashes),
            until_us=lambda: clock.until_us,
        )
        try:
            restarts = _Driver(job, clock, dict(rescale or {}), attempts).run()
            job.flush()
        finally:
            job.close()
        return _result(job, restarts)


@dataclass
class _Clock:
    """Stands still until it is moved."""

    at_us: int
    step_us: int
    wait_us: int
    #: How far it goes when there is nothing to read.
    until_us: int = 0

    def now_us(self) -> int:
        return self.at_us

    def move(self, by_us: int = 0) -> None:
        self.at_us += max(by_us, self.step_us)

    def rows_came(self) -> None:
        self.until_us = self.at_us + self.wait_us

    def wait(self, due_us: int | None) -> bool:
        """Move by a step, or to an instant before that; False at the end of patience."""
        if self.at_us >= self.until_us:
            return False
        later = self.at_us + self.step_us
        self.at_us = later if due_us is None or due_us <= self.at_us else min(due_us, later)
        return True


@dataclass
class _Driver:
    """Starts and advances a job, and starts it again after a crash."""

    job: LocalJob
    clock: _Clock
    rescale: dict[int, int]
    attempts: int
    failures: int = 0
    restarts: int = 0

    def run(self) -> int:
        waited = False
        self._start()
        self.clock.rows_came()
        while not self.job.finished:
            self._rescale()
            if self._advance():
                waited = False
            elif not waited:
                # An epoch may be due only because of the interval between epochs: wait once for it.
                waited = True
                self.clock.move(self.job.epochs.min_interval_us)
            elif not self.clock.wait(self.job.due_us):
                break
        return self.restarts

    def _start(self) -> None:
        """An error of the first start ends the run; a start that is killed is another attempt."""
        try:
            self.job.restart()
        except LocalCrash:
            self._restart()

    def _rescale(self) -> None:
        due = [epoch for epoch in self.rescale if epoch <= self.job.memory.durable + 1]
        for epoch in sorted(due):
            self._restart(self.rescale.pop(epoch))

    def _advance(self) -> bool:
        try:
            done = self.job.advance()
        except LocalCrash:
            self._restart()
            return True
        except HeadraceError as error:
            self._count(error)
            self._restart()
            return True
        if done is None:
            return False
        self.failures = 0
        self.clock.move()
        if done.positions:
            self.clock.rows_came()
        return True

    def _restart(self, shards: int | None = None) -> None:
        self.restarts += 1
        try:
            self.job.restart(shards)
        except LocalCrash:
            self._restart(shards)
        except HeadraceError as error:
            self._count(error)
            self._restart(shards)

    def _count(self, error: HeadraceError) -> None:
        self.failures += 1
        if not error.retryable or self.failures >= self.attempts:
            raise error


def _result(job: LocalJob, restarts: int) -> LocalResult:
    durable = job.memory.offsets[: job.memory.durable + 1]
    return LocalResult(
        epochs=tuple(map(_epoch, durable)),
        counts=job.memory.ledger.counts,
        restarts=restarts,
        finished=job.finished,
        watermarks={
            uid: mark
            for uid, mark in job.memory.last.watermarks.items()
            if uid in job.settings.strategies
        },
        metrics=readings(job.memory.metrics),
        _plan=job.plan,
        _logs=job.memory.stores,
    )


def _epoch(offset: Offset) -> LocalEpoch:
    return LocalEpoch(
        offset.epoch,
        offset.ranges,
        offset.before,
        offset.watermarks,
        offset.clock_us,
        offset.clock_before_us,
    )
