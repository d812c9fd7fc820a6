"""What a test asks to go wrong: requests that fail, producers that are killed, calls in between.

Each request of a client has a name. What is asked for happens right before the request takes effect, or right after it
did and before the client has the answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from headrace._local.job import LocalCrash
from headrace.connectors.kafka.clients import library
from headrace.errors import BuildError

__all__ = ["Faults", "Killed", "Moment", "Request", "failure"]

#: `init`, `append` (each record), `commit` and `abort` of producers; `fetch` of consumers; questions about `topics`,
#: `offsets` and `groups`; `create`: of a topic.
Request = Literal[
    "init", "append", "commit", "abort", "fetch", "topics", "offsets", "groups", "create"
]
Moment = Literal["before", "after"]


class Killed(LocalCrash):
    """The process of this producer was killed; `run_local` starts the job again."""


def failure(code: str, words: str | None = None, *, fatal: bool = False) -> Exception:
    """An error of the client library, by the name of its code."""
    known = library()
    number: Any = getattr(known.KafkaError, code, None)
    if not isinstance(number, int):
        raise BuildError(
            f"the client library has no error {code!r}; one of its names is _TIMED_OUT"
        )
    error = known.KafkaError(number, words, fatal)
    raised: Exception = known.KafkaException(error)
    return raised


@dataclass
class _Fault:
    request: Request
    moment: Moment
    action: Callable[[], None]
    #: So many such requests go well first.
    skip: int
    times: int


class Faults:
    """What is to happen, in the order in which it was asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Fault] = []

    def add(
        self, request: Request, moment: Moment, action: Callable[[], None], nth: int, times: int
    ) -> None:
        """Have `action` called at the nth such request from now on, and at the `times` - 1 after it."""
        if request not in get_args(Request) or moment not in get_args(Moment):
            raise BuildError(
                f"faults happen before or after {', '.join(get_args(Request))}, not {moment!r} {request!r}"
            )
        if nth < 1 or times < 1:
            raise BuildError(f"requests are counted from 1, not nth={nth}, times={times}")
        with self._lock:
            self._waiting.append(_Fault(request, moment, action, nth - 1, times))

    def reach(self, request: Request, moment: Moment) -> None:
        """Do what was asked for here, which may raise."""
        with self._lock:
            due = [one for one in self._waiting if (one.request, one.moment) == (request, moment)]
            actions = [one.action for one in due if self._is_due(one)]
        for action in actions:
            action()

    @property
    def unreached(self) -> int:
        """How often something is still to happen."""
        with self._lock:
            return sum(fault.times for fault in self._waiting)

    def _is_due(self, fault: _Fault) -> bool:
        if fault.skip:
            fault.skip -= 1
            return False
        fault.times -= 1
        if not fault.times:
            self._waiting.remove(fault)
        return True
