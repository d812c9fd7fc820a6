"""The event loop of this process, and the functions that are open in it.

A worker keeps both between batches and epochs, because connections belong to the loop that they were made in. The loop
moves only while `run` has something to run: a task that a user's code leaves behind stands still in between. All
is closed when the process ends in good order; one that is killed does not come to it, and Spark kills its workers.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

from headrace._runtime.usercode import calling

__all__ = ["close_function", "run"]

_T = TypeVar("_T")


class _Home:
    """A loop and what is open in it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        # Reentrant: what runs is opened under the same lock, so that nobody closes it before it has run.
        self.lock = threading.RLock()
        self.opened: dict[str, Any] = {}
        # With a factory of ours the runner leaves the current loop of the user's thread alone.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
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

    def open(self, uid: str, function: Any) -> None:
        if self.opened.get(uid) is not function:
            # Another start of the job brings another copy.
            self.close(uid)
            with calling(uid):
                self.run(_call(function, "open"))
            self.opened[uid] = function

    def close(self, uid: str) -> None:
        if uid in self.opened:
            with calling(uid):
                self.run(_call(self.opened.pop(uid), "close"))

    def end(self) -> None:
        with ExitStack() as last_first:
            last_first.callback(self._runner.get_loop().close)
            last_first.callback(self.run, _cancel_others())
            for uid in self.opened:
                last_first.callback(self.close, uid)


_home: _Home | None = None
#: Homes of processes that this one was forked from. Even collecting them would take their loops' sockets out of the
#: poll that they share with this process.
_inherited: list[_Home] = []


def run(uid: str, function: Any, work: Coroutine[Any, Any, _T]) -> _T:
    """Run to its end what calls the function of a step, which is opened before if it is not yet."""
    home = _here()
    with home.lock:
        try:
            home.open(uid, function)
        except BaseException:
            work.close()
            raise
        return home.run(work)


def close_function(uid: str) -> None:
    """Close the function of a step, if it is open."""
    home = _here()
    with home.lock:
        home.close(uid)


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
    await asyncio.get_running_loop().shutdown_asyncgens()
