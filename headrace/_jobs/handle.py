"""The handle of a running job, and the thread that runs attempt after attempt."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from headrace._commit.manifest import Manifest
from headrace._commit.recovery import Recovered
from headrace._epochs.facts import Facts
from headrace._epochs.offset import Offset
from headrace._graph.plan import Plan
from headrace._jobs.summary import Summary
from headrace._plan.settings import RunSettings
from headrace._plan.timing import known_time, planner_settings
from headrace._runtime.histogram import Distribution
from headrace._runtime.metrics import readings
from headrace._spark.attempt import Attempt, Signals
from headrace._spark.epochs import RecordedEpoch
from headrace._spark.state_reader import query_state
from headrace._watermarks.merging import watermark_of
from headrace._watermarks.waiting import Why, instant, waiting_steps
from headrace.errors import EngineError, HeadraceError, UserCodeError
from headrace.watermarks import NO_WATERMARK

if TYPE_CHECKING:
    from headrace._spark.attempt import StreamingQuery

__all__ = ["JobHandle", "why"]

_LOOK_S = 0.2


class JobHandle:
    """A job that runs in the background. All methods may be called from any thread.

    job = env.start()
    job.await_epoch(10, timeout=timedelta(minutes=1))
    job.stop(drain=True)
    """

    def __init__(
        self,
        plan: Plan,
        settings: RunSettings,
        *,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._say = say
        self._changed = threading.Condition()
        self._manifest: Manifest | None = None
        self._watermarks: Mapping[str, int] = {}
        self._timed = planner_settings(plan, settings.epochs).strategies.keys()
        self._offset: Offset | None = None
        self._heavy: Mapping[str, Mapping[str, int]] = {}
        self._rows = 0
        self._failures = self._user_failures = 0
        self._was_finished = False
        self._exception: HeadraceError | None = None
        self._query: StreamingQuery | None = None
        self._done = False
        self._began = time.monotonic()
        self._ended = self._began
        self._signals = Signals(
            threading.Event(),
            threading.Event(),
            threading.Event(),
            self._recovered,
            self._query_started,
            self._recorded,
            say,
        )
        self._thread = threading.Thread(target=self._run, name=f"headrace {plan.job}", daemon=True)
        self._thread.start()

    @property
    def epoch(self) -> int:
        """The last epoch that is recorded; -1 before the first."""
        return -1 if self._manifest is None else self._manifest.epoch

    @property
    def watermarks(self) -> Mapping[str, int]:
        """Of sources and steps that assign timestamps, by uid: the watermark of the last epoch, in us since 1970."""
        return dict(self._watermarks)

    @property
    def step_watermarks(self) -> Mapping[str, datetime | None]:
        """Of windows and other keyed steps, by uid: the watermark that each goes by; None before the first
        and behind the end of the input."""
        marks = None if self._offset is None else self._offset.watermarks
        feeds = planner_settings(self._plan, self._settings.epochs).feeds
        return {
            uid: instant(NO_WATERMARK if marks is None else watermark_of(marks, above))
            for uid, above in feeds.items()
        }

    @property
    def heavy_keys(self) -> Mapping[str, Mapping[str, int]]:
        """By uid of a keyed step: the keys with the most rows in the last epoch that had rows, and how many."""
        return {uid: dict(keys) for uid, keys in self._heavy.items()}

    @property
    def metrics(self) -> Mapping[str, Mapping[str, int | float | Distribution]]:
        """By uid and name, what functions counted with `ctx.metrics` since the job began.

        A counter is an int, a gauge a float, a histogram has `count`, `sum`, `min`, `max`, `mean` and
        `quantile(q)`. They tell of the last recorded epoch and, like rows, no epoch counts twice.
        """
        return {} if self._manifest is None else readings(self._manifest.metrics)

    def query_state(self, uid: str, name: str, key: Any = None) -> Any:
        """What a process function keeps under a name for one key, behind the last durable epoch; for debugging.

        A value or None, a list, or a dict for a map; of `Aggregating` the result. A key of several columns is a
        tuple; state that belongs to no key is asked for without one. It takes about a second. All keys at once:
        `hr.read_state(checkpoint, uid, name)`.
        """
        return query_state(self._plan, self._settings, uid, name, key)

    def why(self) -> Why:
        """Why windows have not fired: which partition of which source each waiting step waits for.

        It prints as sentences. It tells of the last epoch; before the first there is nothing to tell.
        """
        if self._offset is None or self._manifest is None:
            return Why(())
        facts = Facts.from_json(self._manifest.facts)
        return waiting_steps(known_time(self._plan, self._offset, facts), time.time_ns() // 1000)

    @property
    def exception(self) -> HeadraceError | None:
        """What ended the job, if an error did."""
        return self._exception

    @property
    def is_running(self) -> bool:
        """Whether the job has neither ended nor failed."""
        return not self._done

    @property
    def summary(self) -> Summary:
        """The counts so far."""
        manifest = self._manifest
        counts = {} if manifest is None else manifest.counts
        end = self._ended if self._done else time.monotonic()
        return Summary(
            self._plan.job,
            self.epoch,
            finished=manifest is not None and manifest.finished,
            rows=self._rows,
            seconds=end - self._began,
            counts=counts,
            was_finished=self._was_finished,
            is_running=self.is_running,
        )

    @property
    def spark_progress(self) -> list[dict[str, Any]]:
        """What Spark reports of the last epochs: durations, state, sources; empty before the first."""
        return (
            [] if self._query is None else [json.loads(p.json) for p in self._query.recentProgress]
        )

    def await_epoch(self, epoch: int, timeout: float | timedelta | None = None) -> bool:
        """Wait until an epoch is recorded: its output is staged, and published a moment later.

        False if the time runs out or the job ends before it; raises what the job failed with.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.epoch >= epoch or self._done, _seconds(timeout))
            if self._exception is not None and self.epoch < epoch:
                raise self._exception
            return self.epoch >= epoch

    def stop(self, *, drain: bool = False, timeout: float | timedelta | None = None) -> Summary:
        """End the job between two epochs, with everything published, and wait for that as `wait` does.

        The next start goes on from there. `drain` reads nothing more but sends the final watermark first:
        all windows fire and the job counts as finished.
        """
        (self._signals.drain if drain else self._signals.stop).set()
        return self.wait(timeout)

    def abort(self) -> None:
        """End the job now; `wait` then raises. The next start goes on behind the last durable epoch."""
        self._signals.abort.set()

    def request_stop(self) -> None:
        """As `stop`, without waiting; for signal handlers."""
        self._signals.stop.set()

    def wait(self, timeout: float | timedelta | None = None) -> Summary:
        """Wait for the end. Raises what the job failed with, or `TimeoutError` if it still runs."""
        deadline = None if timeout is None else time.monotonic() + (_seconds(timeout) or 0.0)
        with self._changed:
            while not self._done:
                # Short waits, because a signal handler runs only between them.
                left = _LOOK_S if deadline is None else min(_LOOK_S, deadline - time.monotonic())
                if left <= 0:
                    raise TimeoutError(f"The job {self._plan.job!r} is still running")
                self._changed.wait(left)
        if self._exception is not None:
            raise self._exception
        return self.summary

    def _run(self) -> None:
        try:
            while not self._attempt():
                pass
        except HeadraceError as error:
            self._exception = error
        except BaseException as error:  # noqa: BLE001 - whoever waits must learn of it
            self._exception = EngineError(f"Headrace failed: {error!r}")
            self._exception.__cause__ = error
        finally:
            with self._changed:
                self._done = True
                self._ended = time.monotonic()
                self._changed.notify_all()

    def _attempt(self) -> bool:
        began = time.monotonic()
        try:
            Attempt(self._plan, self._settings, self._signals).run()
        except HeadraceError as error:
            if not error.retryable or self._asked_to_end():
                raise
            self._pause(error, time.monotonic() - began)
            if self._asked_to_end():
                raise
            return False
        return True

    def _pause(self, error: HeadraceError, lasted_s: float) -> None:
        """Wait as the restart policy says, or give up with the error."""
        restart = self._settings.restart
        if lasted_s > restart.reset_after.total_seconds():
            self._failures = self._user_failures = 0
        self._failures += 1
        self._user_failures += isinstance(error, UserCodeError)
        delay = restart.delay(self._failures, self._user_failures)
        if delay is None:
            raise error
        first = str(error).splitlines()[0]
        self._say(f"restarting in {delay.total_seconds():.1f} s after: {first}")
        end = time.monotonic() + delay.total_seconds()
        while time.monotonic() < end and not self._asked_to_end():
            time.sleep(min(0.1, max(0.0, end - time.monotonic())))

    def _asked_to_end(self) -> bool:
        return self._signals.stop.is_set() or self._signals.abort.is_set()

    def _recovered(self, recovered: Recovered) -> None:
        with self._changed:
            self._manifest = recovered.manifest
            self._was_finished = recovered.finished
            self._changed.notify_all()

    def _query_started(self, query: StreamingQuery) -> None:
        self._query = query

    def _recorded(self, recorded: RecordedEpoch) -> None:
        with self._changed:
            self._manifest = recorded.manifest
            self._offset = recorded.offset
            if recorded.rows:
                self._heavy = recorded.heavy
            self._watermarks = {
                uid: mark for uid, mark in recorded.offset.watermarks.items() if uid in self._timed
            }
            self._rows += recorded.rows
            self._changed.notify_all()


def why(job: JobHandle) -> Why:
    """Why have windows of this job not fired? The same as `job.why()`."""
    return job.why()


def _seconds(timeout: float | timedelta | None) -> float | None:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
