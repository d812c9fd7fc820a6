"""Where a checked job is killed: at a point of the protocol, or before a line of the sink's own code.

Lines are counted while methods of a sink run, in the files of its classes and in those beside them, so that every place
between two lines of a user's `publish` can be tried one by one. What kills is a real signal, except in `Crashing`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, TypeVar

from headrace._commit.faults import Faults, KillAt
from headrace.endpoints import Publisher, Receipt

__all__ = ["Crashed", "Crashing", "Lines", "Watched", "killing"]

_T = TypeVar("_T")

#: What a user's class inherits is not the user's code.
_OURS = frozenset(
    {
        "headrace.endpoints",
        "headrace.connectors.twophase.sink",
        "headrace.connectors.twophase.spooled",
    }
)


class Crashed(BaseException):
    """Stands for the end of a process: nothing may catch it."""


class Crashing(Faults):
    """Raises at one point of one epoch."""

    def __init__(self, point: str | None, epoch: int) -> None:
        self._place = (point, epoch)

    def reach(self, point: str, epoch: int) -> None:
        if (point, epoch) == self._place:
            raise Crashed


def killing(point: str | None, epoch: int) -> Faults:
    """SIGKILL for the process that reaches the point, which is the only one of its kind."""
    if point is None:
        return Faults()
    return KillAt(point, epoch, "driver", pid=os.getpid())


@dataclass
class Lines:
    """Counts lines of a sink's code as they are reached, and sends a signal before one of them."""

    #: None: only count.
    at: int | None = None
    signal: int = signal.SIGKILL
    #: File and number of every line that was reached, in that order.
    places: list[str] = field(default_factory=list)
    roots: set[str] = field(default_factory=set)

    def add(self, *things: object) -> None:
        """Count in the code of the classes of these objects, too."""
        for thing in things:
            self.roots |= {
                str(Path(member.__code__.co_filename).parent)
                for cls in type(thing).__mro__
                for member in vars(cls).values()
                if isinstance(member, FunctionType) and cls.__module__ not in _OURS
            }

    def within(self, work: Callable[[], _T]) -> _T:
        """Run something, counting."""
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            return work()
        finally:
            sys.settrace(before)

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._line if str(Path(frame.f_code.co_filename).parent) in self.roots else None

    def _line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self.places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
            if len(self.places) == self.at:
                # For this thread, which so gets no further; a process may have another one stopped first.
                signal.pthread_kill(threading.get_ident(), self.signal)
        return self._line


@dataclass
class Watched(Publisher):
    """A publisher that tells when it publishes, and whose lines can be counted."""

    inner: Publisher
    tell: Callable[[str, Any], None]
    #: Lines of `publish` of this epoch; with `recovering`, of all that a start asks.
    lines: Lines | None = None
    epoch: int = 1
    recovering: bool = False
    #: End the process behind the publish with the line in it: it is not to do more.
    last: bool = False
    began: float = field(default=0.0, init=False)

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        mine = epoch == self.epoch
        if mine:
            self.tell("publishing", epoch)
            self.began = time.perf_counter()
        try:
            self._counted(lambda: self.inner.publish(epoch, receipts), mine or self.recovering)
        finally:
            if mine and self.last and self.lines and len(self.lines.places) >= (self.lines.at or 0):
                os._exit(0)
        if mine:
            self.tell("published", time.perf_counter() - self.began)
            self.tell("lines", self.lines.places if self.lines else [])

    def published(self) -> int | None:
        return self._counted(self.inner.published, self.recovering)

    def highest_seen(self) -> int | None:
        return self._counted(self.inner.highest_seen, self.recovering)

    def discard(self, keep: frozenset[int]) -> None:
        self._counted(lambda: self.inner.discard(keep), self.recovering)

    def flush(self) -> None:
        self.inner.flush()

    def settled(self) -> int | None:
        return self.inner.settled()

    def close(self) -> None:
        self.inner.close()

    def _counted(self, work: Callable[[], _T], counted: bool) -> _T:
        if self.lines is None or not counted:
            return work()
        return self.lines.within(work)
