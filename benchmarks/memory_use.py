"""How much memory and time of a core a process and all its descendants take, from /proc.

PSS divides a page that several processes map among them, so the sum over processes counts it once. Pages that
workers share, such as the arrays of a state replica, are what makes it differ from the sum of the resident sizes.
"""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MemoryUse", "cpu_seconds", "descendants", "memory_use"]

PROC = Path("/proc")


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of a process tree: shared pages counted once, and counted in every process."""

    processes: int
    pss: int
    rss: int


def memory_use(root: int) -> MemoryUse:
    """The use of this process and everything below it."""
    pids = descendants(root)
    fields = [_rollup(pid) for pid in pids]
    return MemoryUse(
        len(pids), sum(f.get("Pss", 0) for f in fields), sum(f.get("Rss", 0) for f in fields)
    )


def cpu_seconds(root: int) -> float:
    """Seconds of a core that this process and everything below it have had so far."""
    ticks = 0
    for pid in descendants(root):
        try:
            fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> set[int]:
    """This process and everything below it."""
    parents: dict[int, int] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold spaces; the parent is the second field behind it.
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {root}
    while grown := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= grown
    return found


def _rollup(pid: int) -> dict[str, int]:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    pairs = (line.split(":") for line in lines)
    return {name: int(value.split()[0]) * 1024 for name, value in pairs}
