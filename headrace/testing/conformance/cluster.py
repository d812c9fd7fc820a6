"""The world around a checked job: it starts drivers, runs their tasks in other processes, and counts what can be seen.

Drivers are forked and may die. Each asks this process, which stays clean of threads and connections, to have its tasks run;
nothing but receipts in JSON goes back. So what a sink keeps in memory reaches no other side of it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from headrace.endpoints import Publisher, Receipt
from headrace.testing.conformance.kills import Lines, Watched, killing
from headrace.testing.conformance.life import Ask, Job, committed
from headrace.testing.conformance.script import EPOCHS, TASKS, UIDS, Expectation
from headrace.testing.conformance.travel import Forked, Gone, elsewhere

__all__ = ["Cluster", "How", "Outcome", "last_words"]

#: How often a driver that says nothing is looked at.
_LOOK_S = 0.01


@dataclass(frozen=True)
class How:
    """How a life goes and ends; by default, well."""

    #: Killed at this point of the protocol of an epoch.
    point: str | None = None
    epoch: int = 1
    #: A signal before this line of the sink's code while it publishes the epoch; 0: lines are counted only.
    line: int | None = None
    signal: int = signal.SIGKILL
    #: Lines are those of a recovery.
    recovering: bool = False
    #: Killed so long behind the beginning of the publication of the epoch.
    after_s: float | None = None


@dataclass
class Outcome:
    """How a life went."""

    ended: bool = False
    error: str | None = None
    #: The last of each kind that the driver told.
    told: dict[str, Any] = field(default_factory=dict)
    #: The driver, if it was stopped.
    stopped: Forked | None = None


@dataclass
class Cluster:
    """One job from its first start to its end."""

    job: Job
    expectation: Expectation
    read: Callable[[], Any]
    patience_s: float
    #: What becomes of the first attempt of every task.
    stumble: str | int | None = None
    #: Look whether staged rows can be seen.
    watched: bool = False
    problems: list[str] = field(default_factory=list)
    #: Receipts of tasks that the driver has not asked for yet.
    _ready: dict[tuple[int, int, int], str] = field(default_factory=dict)

    def live(self, how: How | None = None, *, asleep_s: float = math.inf) -> Outcome:
        """One start, in a process of its own; it is given up when it has slept so long without a word."""
        how = how or How()
        child = Forked(partial(_drive, self.job, how, self.patience_s))
        outcome = self._serve(child, how, asleep_s)
        if outcome.stopped is None:
            child.end()
        return outcome

    def finish(self) -> None:
        """One more start, to the end."""
        outcome = self.live()
        if not outcome.ended:
            self.problems.append(f"a start failed: {last_words(outcome.error)}")

    def bury(self, zombie: Forked) -> None:
        """Let a stopped driver go on to the end of its publication."""
        zombie.wake()
        zombie.wait(self.patience_s)
        zombie.end()

    def verdict(self, *, ordered: bool) -> list[str]:
        """What is wrong in the end."""
        self.expectation.durable = committed(self.job.root)
        visible = self.expectation.script.see(self.read())
        found = self.expectation.problems(visible, ordered=ordered)
        return list(dict.fromkeys([*self.problems, *found]))

    def lines_of_a_task(self) -> list[str]:
        """The lines of the sink's code that one task reaches."""
        rows = self._rows(0, 0, 0)
        return elsewhere(partial(_stumbled, 0, self.job, 0, "f" * 32, 1, rows))

    def ask_here(self) -> Ask:
        """Tasks that run in this process."""

        def ask(epoch: int, task: int, incarnation: str, fence: int) -> Sequence[Receipt]:
            rows = self._rows(epoch, task, fence)
            text = _staged(self.job, epoch, incarnation, fence, rows)
            return [Receipt(**body) for body in json.loads(text)]

        return ask

    def _serve(self, child: Forked, how: How, asleep_s: float) -> Outcome:
        outcome, until = Outcome(), time.monotonic() + 2 * self.patience_s
        # Looks that find it asleep are counted, not seconds: a process that waits for a busy machine is not asleep.
        sleeping = 0
        while time.monotonic() < until and sleeping * _LOOK_S < asleep_s:
            if not child.pipe.poll(_LOOK_S):
                if child.state() == "stopped":
                    outcome.stopped = child
                    return outcome
                sleeping += child.sleeps()
                continue
            sleeping = 0
            try:
                kind, value = child.pipe.recv()
            except (EOFError, OSError):
                return outcome
            self._heed(child, how, outcome, kind, value)
        outcome.error = "the job did not end in time"
        return outcome

    def _heed(self, child: Forked, how: How, outcome: Outcome, kind: str, value: Any) -> None:
        outcome.told[kind] = value
        if kind == "task":
            with contextlib.suppress(OSError):
                child.pipe.send(self._told(value))
        elif kind == "error":
            outcome.error = value
        elif kind == "ended":
            outcome.ended = True
        elif kind == "publishing" and how.after_s is not None:
            time.sleep(how.after_s)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)

    def _told(self, value: tuple[int, int, str, int]) -> Any:
        try:
            return self._answer(*value)
        except (AssertionError, Gone) as error:
            return f"a task failed: {error}"

    def _answer(self, epoch: int, task: int, incarnation: str, fence: int) -> list[dict[str, Any]]:
        if not EPOCHS[epoch]:
            return []
        if (epoch, task, fence) not in self._ready:
            self._run_all(epoch, incarnation, fence)
        receipts: list[dict[str, Any]] = json.loads(self._ready.pop((epoch, task, fence)))
        return receipts

    def _run_all(self, epoch: int, incarnation: str, fence: int) -> None:
        """All tasks of an epoch in one worker: a process for each would take most of a check's time.

        Attempts that fail do so beside a task that is staged already and must stay so.
        """
        rows = [self._rows(epoch, task, fence) for task in range(TASKS)]
        staged = partial(_all_staged, self.job, epoch, incarnation, fence)
        if self.stumble is None:
            texts = elsewhere(partial(staged, rows))
        else:
            texts = elsewhere(partial(staged, rows[:1]))
            self._lose(epoch, incarnation, fence)
            texts += elsewhere(partial(staged, rows[1:]))
        self._ready.update({(epoch, task, fence): text for task, text in enumerate(texts)})
        if self.watched:
            visible = self.expectation.script.see(self.read())
            self.problems += self.expectation.early(visible, epoch, fence)

    def _rows(self, epoch: int, task: int, fence: int) -> dict[str, pa.RecordBatch]:
        if not EPOCHS[epoch]:
            return {}
        return {
            uid: self.expectation.script.batch(self.expectation.draw(uid, epoch, fence, task))
            for uid in UIDS
        }

    def _lose(self, epoch: int, incarnation: str, fence: int) -> None:
        """An attempt at a task that fails; another one follows."""
        script = self.expectation.script
        rows = {}
        for uid in UIDS:
            numbers = script.draw(EPOCHS[epoch], 0)
            self.expectation.failed += numbers
            rows[uid] = script.batch(numbers)
        with contextlib.suppress(Gone):
            elsewhere(partial(_stumbled, self.stumble, self.job, epoch, incarnation, fence, rows))


def _drive(job: Job, how: How, patience_s: float, pipe: Connection) -> None:
    """The driver's process."""
    lock = threading.Lock()
    lines = None if how.line is None else Lines(how.line or None, how.signal)
    zombie = how.signal != signal.SIGKILL

    def tell(kind: str, value: Any) -> None:
        with lock:
            pipe.send((kind, value))

    def ask(epoch: int, task: int, incarnation: str, fence: int) -> list[Receipt]:
        tell("task", (epoch, task, incarnation, fence))
        answer = pipe.recv()
        if isinstance(answer, str):
            raise AssertionError(answer)  # noqa: TRY004 - text is what went wrong over there
        return [Receipt(**body) for body in answer]

    def wrap(make: Callable[[], Publisher]) -> Publisher:
        if lines is None:
            return Watched(make(), tell, None, how.epoch)
        lines.add(job.sink)
        inner = lines.within(make) if how.recovering else make()
        lines.add(inner)
        return Watched(inner, tell, lines, how.epoch, how.recovering, zombie)

    # One that is left to hang has only this to publish: it must not write to a checkpoint that it does not hold.
    last = how.epoch if zombie else len(EPOCHS) - 1
    job.live(ask, killing(how.point, how.epoch), wrap, patience_s, last=last)
    tell("ended", None)


def _staged(
    job: Job, epoch: int, incarnation: str, fence: int, rows: dict[str, pa.RecordBatch]
) -> str:
    """One task's work for all sinks."""
    task = uuid.uuid4().hex[:12]
    receipts = [
        asdict(receipt)
        for uid, batch in rows.items()
        for receipt in job.stage(uid, epoch, incarnation, fence, task, batch)
    ]
    return json.dumps(receipts)


def _all_staged(
    job: Job, epoch: int, incarnation: str, fence: int, tasks: list[dict[str, pa.RecordBatch]]
) -> list[str]:
    return [_staged(job, epoch, incarnation, fence, rows) for rows in tasks]


def _stumbled(
    how: str | int | None,
    job: Job,
    epoch: int,
    incarnation: str,
    fence: int,
    rows: dict[str, pa.RecordBatch],
) -> list[str]:
    """A task that comes to nothing: its receipts are lost, it is killed, or it is told to forget."""
    if isinstance(how, int):
        lines = Lines(how or None)
        lines.add(job.sink)
        lines.within(partial(_staged, job, epoch, incarnation, fence, rows))
        return lines.places
    if how == "lost":
        _staged(job, epoch, incarnation, fence, rows)
        return []
    for stager in _half_written(job, epoch, incarnation, fence, rows):
        if how == "aborted":
            stager.abort()
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return []


def _half_written(
    job: Job, epoch: int, incarnation: str, fence: int, rows: dict[str, pa.RecordBatch]
) -> Iterator[Any]:
    for uid, batch in rows.items():
        context = job.context(uid, incarnation, fence)
        stager = job.sink.stager(context, epoch, uuid.uuid4().hex[:12])
        stager.write(batch)
        yield stager


def last_words(error: str | None) -> str:
    """The end of a traceback."""
    if error is None:
        return "its process ended"
    return "\n    ".join(error.strip().splitlines()[-8:])
