"""What an object goes through on its way to a worker, and processes that can be killed.

Spark sends classes of a program along with their instances. Here a class stays where it is, and only what an instance
holds is pickled, so that tests may check classes of their own.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, TypeAlias, TypeVar

__all__ = ["Forked", "Gone", "elsewhere", "travelled"]

_T = TypeVar("_T")
State: TypeAlias = Literal["running", "stopped", "dead"]
_NO_ANSWER_S = 60.0


class Gone(Exception):
    """A process ended without an answer."""


def travelled(thing: _T) -> _T:
    """The copy that a worker would get; `AssertionError` if it cannot be sent."""
    classes: dict[str, Any] = {}

    class Packer(pickle.Pickler):
        def persistent_id(self, obj: Any) -> str | None:
            if isinstance(obj, type | FunctionType):
                classes[str(id(obj))] = obj
                return str(id(obj))
            return None

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return classes[pid]

    packed = io.BytesIO()
    try:
        Packer(packed).dump(thing)
    except Exception as error:
        raise AssertionError(
            f"{type(thing).__name__} cannot be sent to a worker: {type(error).__name__}: {error}."
            " Open connections, files and locks in open, not in __init__"
        ) from error
    packed.seek(0)
    copied: _T = Unpacker(packed).load()
    return copied


class Forked:
    """A process made from this one, with a pipe to it."""

    def __init__(self, work: Callable[[Connection], Any]) -> None:
        self.pipe, theirs = Pipe()
        with warnings.catch_warnings():
            # Threads are not forked with us; what runs there makes its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            self.pipe.close()
            _run(work, theirs)
        theirs.close()
        self._state: State = "running"

    def state(self) -> State:
        """Look, without waiting."""
        if self._state != "dead":
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid:
                self._state = "stopped" if os.WIFSTOPPED(status) else "dead"
        return self._state

    def sleeps(self) -> bool:
        """Whether it waits for something that is neither the processor nor a disk."""
        try:
            threads = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/stat")]
        except OSError:
            return False
        # The state stands behind the name in brackets, which may hold anything.
        return all(text.rpartition(") ")[2].startswith("S") for text in threads)

    def wake(self) -> None:
        """Let a stopped process go on."""
        if self._state == "stopped":
            self._state = "running"
            os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """Kill it if it still lives, and take it in."""
        if self.state() != "dead":
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._state = "dead"
        self.pipe.close()

    def wait(self, seconds: float) -> bool:
        """Whether it ends by itself in time."""
        until = time.monotonic() + seconds
        while self.state() != "dead" and time.monotonic() < until:
            time.sleep(0.002)
        return self._state == "dead"


def elsewhere(work: Callable[[], _T]) -> _T:
    """The result of a function in a process of its own; `Gone` if that was killed."""
    child = Forked(lambda pipe: pipe.send(("result", work())))
    try:
        if not child.pipe.poll(_NO_ANSWER_S):
            raise AssertionError(f"no answer within {_NO_ANSWER_S:.0f} s")
        kind, answer = child.pipe.recv()
    except EOFError:
        raise Gone from None
    finally:
        child.end()
    if kind == "error":
        raise AssertionError(answer)
    result: _T = answer
    return result


def _run(work: Callable[[Connection], Any], pipe: Connection) -> None:
    """In the new process; never returns."""
    gc.disable()  # what belongs to the process that we come from is not ours to close
    code = 1
    try:
        work(pipe)
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        with contextlib.suppress(OSError):
            pipe.send(("error", traceback.format_exc(limit=-6)))
    finally:
        os._exit(code)
