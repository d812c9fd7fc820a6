"""The event loop of this process, and the functions that are open in it.

A worker keeps both between batches and epochs, because connections belong to the loop that they were made in. The loop
moves only while `run` has something to run: a task that a user's code leaves behind stands still in between.
`lifecycle` says when functions are closed; the loop is closed behind them when the process ends in good order.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from headrace._runtime import lifecycle

__all__ = ["open_function", "run"]

_T = TypeVar("_T")


class _Home:
    """A loop and what is open in it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.opened: dict[int, _Opened] = {}
        # With a factory of ours the runner leaves the current loop of the user's thread alone.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        # Two local jobs in two threads take turns. A signal comes in the thread whose turn it is.
        self._turn = threading.RLock()
        self._running = False

    @property
    def entered(self) -> bool:
        """This thread is in the middle of `run`; others wait until they are not kept from it."""
        with self._turn:
            return self._running

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        with self._turn:
            self._running = True
            try:
                return self._run_in_some_thread(work)
            finally:
                self._running = False

    def end(self) -> None:
        self.run(_cancel_all())
        self._runner.get_loop().close()

    def _run_in_some_thread(self, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._run(work)
        # A notebook has a loop running in this very thread, and a thread cannot run two.
        with ThreadPoolExecutor(1) as aside:
            return aside.submit(self._run, work).result()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            return self._runner.run(work)
        except (KeyboardInterrupt, SystemExit):
            # These leave the loop at once, whatever still goes on in it.
            self._runner.run(_cancel_others())
            raise


class _Opened:
    """A function as `lifecycle` knows it: `open` and `close` are called, not awaited."""

    def __init__(self, home: _Home, function: Any) -> None:
        self._home = home
        self.function = function

    def open(self, _context: None) -> None:
        self._home.run(_call(self.function, "open"))

    def close(self) -> None:
        self._home.opened.pop(id(self.function), None)
        # The process may be told to end in the middle of a batch; then the loop cannot be entered again.
        if not self._home.entered:
            self._home.run(_call(self.function, "close"))


_home: _Home | None = None
#: Homes of processes that this one was forked from. Even collecting them would take their loops' sockets out of the
#: poll that they share with this process.
_inherited: list[_Home] = []


def open_function(uid: str, function: Any) -> Any:
    """The object that works in this process for the one in the plan, opened if it is not yet."""
    home, works = _here(), lifecycle.working(function)
    held = home.opened.get(id(works)) or _Opened(home, works)
    lifecycle.opened(held, None, uid)
    home.opened[id(works)] = held
    return works


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end."""
    return _here().run(work)


def _here() -> _Home:
    global _home
    if _home is None or _home.process != os.getpid():
        if _home is not None:
            _inherited.append(_home)
        _home = _Home()
    return _home


@atexit.register
def _end() -> None:
    if _home is not None and _home.process == os.getpid():
        lifecycle.close_all()
        _home.end()


async def _call(function: Any, name: str) -> None:
    """Call `open` or `close`, plain or not, if there is one."""
    method = getattr(function, name, None)
    made = method() if callable(method) else None
    if inspect.isawaitable(made):
        await made


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _cancel_all() -> None:
    """For the end of a loop only: one whose generators were shut down takes no new ones."""
    await _cancel_others()
    await asyncio.get_running_loop().shutdown_asyncgens()
