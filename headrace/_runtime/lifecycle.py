"""Functions that a process has opened: each once, and each closed when the process ends in good order.

A worker keeps its functions from epoch to epoch, so `open` may be dear. It is called on the object that works in this
process; nothing of a run stays on the one that the user made, which `working` sees to.
"""

from __future__ import annotations

import atexit
import copy
import os
import signal
import sys
import traceback
from typing import Any

from headrace._runtime.usercode import calling

__all__ = ["close_all", "close_on_hangup", "forgotten_on_close", "opened", "working"]

# By identity, as a user's class may have an equality of its own; held, so that no other object gets the number.
_opened: dict[int, Any] = {}
_working: dict[int, tuple[Any, Any]] = {}
#: Others that keep what was made for functions, and must forget it when they are closed.
_keepers: list[dict[int, Any]] = []


def forgotten_on_close(kept: dict[int, Any]) -> None:
    """Empty this when functions are closed: one that was closed does not work again, its copy begins anew."""
    _keepers.append(kept)


def working(function: Any) -> Any:
    """The copy of a user's object that works in this process."""
    found = _working.get(id(function))
    if found is None:
        found = _working[id(function)] = (function, copy.copy(function))
    return found[1]


def opened(function: Any, context: Any, uid: str) -> Any:
    """The same function, opened with this context unless it was before."""
    if id(function) not in _opened:
        with calling(uid):
            function.open(context)
        _opened[id(function)] = function
    return function


def close_all() -> None:
    """Close what is open. One that fails is told of and keeps none of the others from it."""
    functions = list(_opened.values())
    _forget()
    for function in reversed(functions):
        try:
            function.close()
        except BaseException:  # noqa: BLE001 - user code may raise anything, SystemExit too
            sys.stderr.write(f"{type(function).__name__}.close failed.\n")
            traceback.print_exc()


def close_on_hangup() -> None:
    """The signal that tells a worker to end closes what is open first; only if nobody else has a use for it."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _hangup)


def _hangup(number: int, _frame: Any) -> None:
    close_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _forget() -> None:
    _opened.clear()
    _working.clear()
    for kept in _keepers:
        kept.clear()


atexit.register(close_all)
# A forked process opens its own.
os.register_at_fork(after_in_child=_forget)
