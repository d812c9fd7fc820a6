"""The calls of one batch: at most so many at a time, each with a time-out and a number of attempts.

A fixed number of tasks take rows in turn, and one timer looks after all of them: calls have the same time-out, so
the one that began first is the first to be too late. A task or a timer for every call costs more than many a call.
What is too late is cancelled and awaited, so nothing of it goes on behind our back.

A task is cancelled by the timer, which makes its call a `TimeoutError`, or because another row failed the batch; the
timer does not run while a task does, so the first always hits a call and never our own code.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from headrace._runtime.detached import detached
from headrace.config import Retry

__all__ = ["Calls"]

_Task = asyncio.Task[None]


class _Failed(Exception):
    """Ends the batch; which row it was stands in `Calls.fatal`."""


class Calls:
    """Calls a coroutine function once for every row, or more often where it fails.

    `is_fatal` says of the last error of a row whether it ends the batch.
    """

    def __init__(
        self,
        function: Callable[[Any], Awaitable[Any]],
        rows: Sequence[Any],
        *,
        capacity: int,
        timeout_us: int | None,
        retry: Retry | None,
        is_fatal: Callable[[BaseException], bool],
    ) -> None:
        # configuration
        self._function = function
        self._capacity = max(1, min(capacity, len(rows)))
        self._timeout_s = None if timeout_us is None else timeout_us / 1e6
        self._retry = retry or Retry(attempts=1)
        self._is_fatal = is_fatal
        # working state
        self._waiting = enumerate(rows)
        #: The calls in flight: when each began, the first to begin first.
        self._began: dict[_Task, float] = {}
        self._too_late: set[_Task] = set()
        self._stopping = False
        self._timer: asyncio.TimerHandle | None = None
        # what comes of it
        #: By row; None if it failed.
        self.results: list[Any] = [None] * len(rows)
        #: The rows that have a result, in the order in which they got it.
        self.finished: list[int] = []
        #: By row, the last error.
        self.failures: dict[int, BaseException] = {}
        #: The row whose error ended the batch.
        self.fatal: int | None = None

    async def run(self) -> None:
        """Call, and return when no call is in flight any more."""
        self._loop = asyncio.get_running_loop()
        if self._timeout_s is not None:
            self._timer = self._loop.call_later(self._timeout_s, self._look)
        tasks = [self._loop.create_task(self._work()) for _ in range(self._capacity)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await self._stop(tasks)
            await asyncio.sleep(0)  # what the calls have closed is closed in the loop's next round
        for task in tasks:
            if not task.cancelled() and not isinstance(task.exception(), _Failed | None):
                await task  # raises what is no fault of the user's code

    async def _stop(self, tasks: Sequence[_Task]) -> None:
        """Cancel what still goes on, and wait for it to end."""
        self._stopping = True
        deque(
            self._waiting, maxlen=0
        )  # no row is left for a call that ends although it was cancelled
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self) -> None:
        """Take rows until none is left."""
        task = asyncio.current_task()
        assert task is not None
        for index, row in self._waiting:
            try:
                self.results[index] = await self._attempt(task, row)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:  # noqa: BLE001 - user code may raise anything, SystemExit too
                if not await self._again(task, index, row, self._meant(task, error)):
                    continue
            self.finished.append(index)

    async def _attempt(self, task: _Task, row: Any) -> Any:
        self._began[task] = self._loop.time()
        try:
            made = await self._function(row)
        finally:
            del self._began[task]
        if task in self._too_late:
            self._pardon(task)  # cancelled, and came to a result all the same
        return detached(made)

    async def _again(self, task: _Task, index: int, row: Any, error: BaseException) -> bool:
        """Make the attempts behind the first, which failed; whether there is a result in the end."""
        made = 1
        while self._retry.allows(error, made):
            await asyncio.sleep(self._retry.pause_s(made, random.random()))
            try:
                self.results[index] = await self._attempt(task, row)
                return True
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as raised:  # noqa: BLE001 - as above
                error = self._meant(task, raised)
            made += 1
        self.failures[index] = error
        if self._is_fatal(error):
            if self.fatal is None:
                self.fatal = index
            raise _Failed
        return False

    def _meant(self, task: _Task, error: BaseException) -> BaseException:
        """What an error stands for: a cancelled call has come too late, or must end with the batch."""
        if self._stopping:
            raise asyncio.CancelledError
        if task not in self._too_late:
            if task.cancelling():
                raise error
            return error
        self._pardon(task)
        if not isinstance(error, asyncio.CancelledError):
            return error
        limit = timedelta(seconds=self._timeout_s or 0)
        return TimeoutError(f"no result within {limit}").with_traceback(error.__traceback__)

    def _pardon(self, task: _Task) -> None:
        """The task goes on with other rows, whose code may ask whether it is being cancelled."""
        self._too_late.discard(task)
        while task.cancelling():
            task.uncancel()

    def _look(self) -> None:
        """Cancel the calls that have taken too long, and come back when the next one would."""
        assert self._timeout_s is not None
        now = self._loop.time()
        late = []
        for task, began in self._began.items():
            if began + self._timeout_s > now:
                break
            late.append(task)
        for task in late:
            # One that does not heed it is told again after as long a time.
            del self._began[task]
            self._began[task] = now
            self._too_late.add(task)
            task.cancel()
        first = next(iter(self._began.values()), now)
        self._timer = self._loop.call_at(first + self._timeout_s, self._look)
