"""Kill points for crash tests. In production `Faults` does nothing.

`HEADRACE_FAULT=K6:3:group` kills at point K6 of epoch 3: the process `group`, the `driver` alone or the
`jvm` alone. `HEADRACE_{GROUP,DRIVER,JVM}_PID` tell the victims to processes that are none of them.
Faults in this form are read from the environment once, so nothing here costs anything while a job runs.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import ClassVar, Literal, cast

from headrace.errors import SetupError

__all__ = ["POINTS", "Faults", "KillAt"]

POINTS = tuple(f"K{number}" for number in range(1, 12))

Victim = Literal["group", "driver", "jvm"]


class Faults:
    """Reaching a kill point does nothing."""

    VARIABLE: ClassVar[str] = "HEADRACE_FAULT"

    def reach(self, point: str, epoch: int) -> None:
        """The job is at `point` of `epoch`."""

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> Faults:
        """What `HEADRACE_FAULT` asks for; without it, nothing."""
        wish = environment.get(Faults.VARIABLE)
        return KillAt.parse(wish, environment) if wish else Faults()


class KillAt(Faults):
    """SIGKILL at one point of one epoch."""

    def __init__(self, point: str, epoch: int, victim: Victim, *, pid: int | None) -> None:
        self.point = point
        self.epoch = epoch
        self.victim = victim
        self.pid = pid

    @staticmethod
    def parse(wish: str, environment: Mapping[str, str]) -> KillAt:
        """From "point:epoch:victim"."""
        parts = wish.split(":")
        known = len(parts) == 3 and parts[0] in POINTS and parts[1].isdigit()
        if not known or parts[2] not in ("group", "driver", "jvm"):
            raise SetupError(
                f"HEADRACE_FAULT={wish!r} is not point:epoch:victim, for example K6:3:group"
            )
        pid = environment.get(f"HEADRACE_{parts[2].upper()}_PID")
        return KillAt(
            parts[0], int(parts[1]), cast(Victim, parts[2]), pid=int(pid) if pid else None
        )

    def reach(self, point: str, epoch: int) -> None:
        """Kill if this is the place."""
        if (point, epoch) != (self.point, self.epoch):
            return
        self._kill()
        # A signal to a group or to another process takes a moment to arrive; nothing may happen in it.
        time.sleep(1.0 if self.victim == "jvm" else 60.0)

    def _kill(self) -> None:
        if self.victim == "group":
            # Spark puts its workers into a group of their own; the job's group is told to them.
            os.killpg(self.pid or os.getpgrp(), signal.SIGKILL)
        elif self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
        elif self.victim == "driver":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            raise SetupError("a fault that kills the JVM needs HEADRACE_JVM_PID")
