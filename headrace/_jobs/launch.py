"""Starting a job in the background, and running one in the foreground with signals and a progress line."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from headrace._graph.plan import Plan
from headrace._jobs.handle import JobHandle
from headrace._jobs.progress import ProgressLine
from headrace._jobs.summary import Summary
from headrace._plan.settings import RunSettings

__all__ = ["run_job", "start_job"]


def start_job(plan: Plan, settings: RunSettings) -> JobHandle:
    """Start and return at once."""
    return JobHandle(plan, settings, say=_say)


def run_job(plan: Plan, settings: RunSettings) -> Summary:
    """Run to the end. SIGINT and SIGTERM stop cleanly, a second one aborts."""
    handle = start_job(plan, settings)
    with _signals(handle), ProgressLine(handle, sys.stderr):
        summary = handle.wait()
    _say(str(summary))
    return summary


def _say(text: str) -> None:
    sys.stderr.write(f"headrace: {text}\n")
    sys.stderr.flush()


@contextmanager
def _signals(handle: JobHandle) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if stopping.is_set():
            handle.abort()
            raise KeyboardInterrupt
        stopping.set()
        handle.request_stop()
        _say("stopping behind the epoch at hand; once more to abort")

    stopping = threading.Event()
    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
