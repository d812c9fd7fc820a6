"""What a worker process of Spark's daemon does between two tasks, where Spark itself does too little or too much.

Spark tells a worker to end with SIGHUP, most often while it waits for a task, and what that signal does is set to its
default where it begins to wait: functions of users would not be closed. And behind every task the garbage collector looks
at all that the process has, libraries included, which takes 40 milliseconds for nothing. So the function in which a worker waits is
wrapped: first the signal is ours again and what the process has kept is put out of the collector's sight, then it waits as ever.
A worker that is killed comes to nothing of this, and Spark kills one for which it has had no task for a minute.
"""

from __future__ import annotations

import gc
import sys
import threading
from functools import wraps
from types import ModuleType
from typing import Any

from headrace._runtime.lifecycle import close_on_hangup

__all__ = ["see_to_what_is_between"]

_DAEMON = "pyspark.daemon"
#: Behind so many tasks a worker has loaded what it needs. What lives by then may stay for good, so it is not many.
_LOADING_TASKS = 3

_wrapped: list[ModuleType] = []


def see_to_what_is_between() -> None:
    """Called in every task; does something once, and only in a worker of Spark's daemon."""
    here = getattr(sys.modules["__main__"], "__spec__", None)
    if getattr(here, "name", None) != _DAEMON or threading.current_thread().name != "MainThread":
        return
    close_on_hangup()
    # The daemon looks it up for each task, in the module that its first argument names.
    module = sys.modules.get(sys.argv[1] if len(sys.argv) > 1 else "pyspark.worker")
    if module is not None and hasattr(module, "main") and module not in _wrapped:
        _wrapped.append(module)
        _wrap(module)


def _wrap(module: ModuleType) -> None:
    main = module.main
    tasks = 0

    @wraps(main)
    def waiting(*streams: Any) -> Any:
        nonlocal tasks
        close_on_hangup()
        if tasks < _LOADING_TASKS:
            # The daemon has collected what is garbage right before.
            gc.freeze()
            tasks += 1
        return main(*streams)

    module.main = waiting  # type: ignore[attr-defined]
