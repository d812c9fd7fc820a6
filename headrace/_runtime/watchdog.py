"""Ends a call of user code that takes longer than it may.

The loop that makes the calls only says which call it is at, by an attribute or by what grows with each call. One
thread of the process looks now and then; a call that it has seen for the whole limit is interrupted by `TookTooLong`,
raised inside of it. In the main thread, where Spark runs tasks, a signal brings it, so that waiting for a socket, a lock
or `sleep` ends too; in another thread it comes with the next step of the interpreter. Code that holds the interpreter
without a pause, as some extensions in C do, cannot be interrupted: not even the thread that looks gets a turn.

    with watching(node.limit_us) as watch:
        for number, row in enumerate(rows):
            watch.call = number
            function(row)
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from headrace._runtime.usercode import TookTooLong

__all__ = ["IDLE", "Watch", "watching"]

#: The number of no call: nothing is interrupted.
IDLE = -1

#: No program uses it for itself: the numbered signals are there for that.
_SIGNAL = signal.SIGRTMIN + 9
_SECOND_US = 1_000_000
#: So often it looks at most, and at least: an eighth of the limit in between.
_BRIEF_US, _LONG_US = 5_000, 100_000


class Watch:
    """One loop of calls."""

    __slots__ = ("_over", "_progress", "_thread", "call", "expired", "limit_us")

    def __init__(self, limit_us: int | None, progress: Callable[[], int] | None = None) -> None:
        self.limit_us = limit_us
        self._progress = progress
        self._thread = threading.get_ident()
        self._over = False
        #: The call that runs now, told by whoever makes it.
        self.call = IDLE
        #: The last call that was interrupted.
        self.expired = IDLE

    @property
    def at(self) -> int:
        """The call that runs now; `IDLE` if none does."""
        if self._over:
            return IDLE
        return self.call if self._progress is None else self._progress()

    def sentence(self) -> str:
        """What a call did that took too long."""
        limit = timedelta(microseconds=self.limit_us or 0)
        return (
            f"took longer than its limit of {limit}. Find out what it waits for, or give it more time: limit= of"
            " process, call_limit= of the Environment."
        )

    def end(self) -> None:
        """No call of this loop can be interrupted any more."""
        self._over = True
        with _lock:
            if self.expired != IDLE and not _is_main(self._thread):
                # It may be on its way still, and would reach the engine.
                _raise_in(self._thread, None)

    def interrupt(self, call: int) -> None:
        """End this call, if it still runs."""
        with _lock:
            if self.at != call:
                return
            self.expired = call
            if _is_main(self._thread):
                signal.pthread_kill(self._thread, _SIGNAL)
            else:
                _raise_in(self._thread, _too_long(self.sentence()))


@contextlib.contextmanager
def watching(limit_us: int | None, progress: Callable[[], int] | None = None) -> Iterator[Watch]:
    """Watch the calls that are made inside; without a limit nothing is watched.

    `progress` tells the number of the call instead of `Watch.call`. Not to be nested: the inner calls would be one call
    of the outer loop.
    """
    watch = Watch(limit_us, progress)
    if limit_us is None:
        yield watch
        return
    with _handler(watch):
        _watchdog.begin(watch)
        try:
            yield watch
        finally:
            try:
                watch.end()
            finally:
                _watchdog.end(watch)


@contextlib.contextmanager
def _handler(watch: Watch) -> Iterator[None]:
    """In the main thread the signal is ours as long as we watch; afterwards it is whose it was."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_signal: int, _frame: Any) -> None:
        # It came from another thread and took its time: the call may be over.
        if watch.expired != IDLE and watch.at == watch.expired:
            raise TookTooLong(watch.sentence())

    before = signal.signal(_SIGNAL, interrupt)
    try:
        yield
    finally:
        # Nobody waits for it, but by default it would end the process, and one may be on its way still.
        signal.signal(_SIGNAL, signal.SIG_IGN if before is signal.SIG_DFL else before)


class Watchdog:
    """The thread of a process that looks, made when it is first needed."""

    def __init__(self) -> None:
        self._watches: list[Watch] = []
        self._wanted = threading.Event()
        self._running = False

    def begin(self, watch: Watch) -> None:
        """Look at this one from now on."""
        with _lock:
            self._watches.append(watch)
            if not self._running:
                self._running = True
                threading.Thread(target=self._look, name="headrace-watchdog", daemon=True).start()
        self._wanted.set()

    def end(self, watch: Watch) -> None:
        """Look at it no more."""
        with _lock:
            self._watches.remove(watch)

    def _look(self) -> None:
        seen: dict[int, tuple[Watch, int, int]] = {}
        last = 0
        while True:
            with _lock:
                watches = list(self._watches)
                if not watches:
                    self._wanted.clear()
            self._wanted.wait()
            pause = min(map(_pause_us, watches), default=0)
            now = time.monotonic_ns() // 1_000
            # A process that was stopped for a while did not run its calls in that time.
            passed, last = min(now - last, 2 * pause), now
            seen = {id(watch): _looked(watch, seen.get(id(watch)), passed) for watch in watches}
            time.sleep(pause / _SECOND_US)


def _looked(
    watch: Watch, seen: tuple[Watch, int, int] | None, passed_us: int
) -> tuple[Watch, int, int]:
    """Which call of a loop runs, and how long it has been seen to."""
    call = watch.at
    if seen is None or seen[0] is not watch or seen[1] != call or call == IDLE:
        return watch, call, 0
    ran_us = seen[2] + passed_us
    if ran_us < (watch.limit_us or 0):
        return watch, call, ran_us
    watch.interrupt(call)
    # Code that catches everything goes on: it is interrupted again when as much time has passed.
    return watch, call, 0


def _pause_us(watch: Watch) -> int:
    return min(max((watch.limit_us or 0) // 8, _BRIEF_US), _LONG_US)


def _is_main(thread: int) -> bool:
    return thread == threading.main_thread().ident


def _too_long(sentence: str) -> type[TookTooLong]:
    """An exception that carries its text, as only a class can be raised in another thread."""

    def told(self: TookTooLong) -> None:
        TookTooLong.__init__(self, sentence)

    return type("TookTooLong", (TookTooLong,), {"__init__": told})


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if kind is None else ctypes.py_object(kind)
    )


_lock = threading.RLock()
_watchdog = Watchdog()


def _forget() -> None:
    """A forked process has no thread but the one that forked."""
    global _lock, _watchdog
    _lock = threading.RLock()
    _watchdog = Watchdog()


os.register_at_fork(after_in_child=_forget)
