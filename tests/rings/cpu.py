"""CPU time of a tree of processes while rings take turns in it, read from /proc twice a second.

Java, Python workers and servers outlive the test that started them and often their parents too, so neither `os.times`
nor what a parent learns of its children is enough. A process belongs to the tree if its parent does, or if it
inherited the variable `MARK`; once seen it is remembered. Elsewhere than on Linux all figures are zero.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

__all__ = ["MARK", "CpuClock"]

#: Set by the run in its own environment, so that whatever it starts has it too.
MARK = "HEADRACE_TEST_RUN"

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PERIOD_S = 0.5

#: Process number and start time: numbers are used again.
_Process = tuple[int, int]


class CpuClock:
    """Adds up CPU seconds under the names that `working_on` gives at the time."""

    def __init__(self, working_on: Callable[[], list[str]]) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._working_on = working_on
        self._mark = f"{MARK}={os.environ.setdefault(MARK, str(os.getpid()))}".encode()
        self._ours: dict[_Process, bool] = {}
        self._used = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="cpu-clock", daemon=True)

    def start(self) -> None:
        """From now on."""
        self._used = self._sample()
        self._thread.start()

    def stop(self) -> None:
        """Up to now."""
        self._done.set()
        self._thread.join()
        self._book()

    def _watch(self) -> None:
        while not self._done.wait(_PERIOD_S):
            self._book()

    def _book(self) -> None:
        before, self._used = self._used, self._sample()
        names = self._working_on()
        for name in names:
            # Time of a process that ended without a parent to inherit it goes from the sum: what was booked stays booked.
            self.seconds[name] += max(0.0, self._used - before) / len(names)

    def _sample(self) -> float:
        """CPU seconds of all processes of the tree that live, and of their children that were waited for."""
        stats = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue  # it has ended
            stats[int(folder.name)] = fields
        known = {(pid, int(fields[19])): self._ours.get((pid, int(fields[19]))) for pid, fields in stats.items()}  # fmt: skip
        for process, ours in known.items():
            if ours is None:
                known[process] = self._is_ours(process[0], stats)
        self._ours = {process: bool(ours) for process, ours in known.items()}
        ticks = sum(
            sum(map(int, stats[pid][11:15])) for (pid, _), ours in self._ours.items() if ours
        )
        return ticks / _TICKS_A_SECOND

    def _is_ours(self, pid: int, stats: dict[int, list[str]]) -> bool:
        above = pid
        while above in stats:
            if above == os.getpid():
                return True
            above = int(stats[above][1])
        try:
            return self._mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
