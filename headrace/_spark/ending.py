"""The end of a worker process: functions of users are closed before it.

Spark's daemon tells its workers to end with SIGHUP, most often while they wait for a task. What that signal does is
set to its default where a worker begins to wait, which would end it at once. So the function in which it waits is
wrapped: first the signal is ours again, then it waits as ever. A worker that is killed comes to nothing of this,
and Spark kills one for which it has had no task for a minute.
"""

from __future__ import annotations

import sys
import threading
from functools import wraps
from types import ModuleType
from typing import Any

from headrace._runtime.lifecycle import close_on_hangup

__all__ = ["close_at_the_end"]

_DAEMON = "pyspark.daemon"

_wrapped: list[ModuleType] = []


def close_at_the_end() -> None:
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

    @wraps(main)
    def closing(*streams: Any) -> Any:
        close_on_hangup()
        return main(*streams)

    module.main = closing  # type: ignore[attr-defined]
