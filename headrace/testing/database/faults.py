"""The failures that a test asked a database for, counted down by the steps of its connections.

They belong to the process of the test: a connection of another process finds none.
"""

import threading
import weakref
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from headrace.errors import BuildError

__all__ = ["Fault", "Faults", "Step", "faults_of"]

Step: TypeAlias = Literal["connect", "statement", "write", "commit"]


@dataclass(slots=True)
class Fault:
    """A failure of the next `times` steps of a kind, after `after` that succeed."""

    step: Step
    after: int = 0
    times: int = 1
    #: The step takes effect; only its answer is lost.
    applied: bool = False

    def __post_init__(self) -> None:
        if self.step not in get_args(Step):
            raise BuildError(f"There is no step {self.step!r}; there are {get_args(Step)}.")
        if self.applied and self.step != "commit":
            raise BuildError(
                f"applied=True is for a commit; a {self.step} takes effect with its commit."
            )
        if self.times < 1 or self.after < 0:
            raise BuildError(
                f"times must be 1 or more, not {self.times}, and after 0 or more, not {self.after}."
            )


class Faults:
    """What one database is to suffer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: list[Fault] = []

    def ask(self, fault: Fault) -> None:
        """Count from now on."""
        with self._lock:
            self._asked.append(fault)

    def reach(self, step: Step) -> Fault | None:
        """A connection is about to do this; the failure that is due."""
        with self._lock:
            due = None
            for fault in [fault for fault in self._asked if fault.step == step]:
                if fault.after:
                    fault.after -= 1
                elif due is None:
                    due = fault
                    fault.times -= 1
            self._asked = [fault for fault in self._asked if fault.times]
            return due

    @property
    def unreached(self) -> int:
        """How many failures are still to come."""
        with self._lock:
            return sum(fault.times for fault in self._asked)


#: A dialect is stateless and travels, so a connection finds its failures by the address of its database.
_BY_ADDRESS: weakref.WeakValueDictionary[str, Faults] = weakref.WeakValueDictionary()


def faults_of(address: str) -> Faults:
    """The failures of the database at an address, kept for as long as the caller or another one has them."""
    return _BY_ADDRESS.setdefault(address, Faults())
