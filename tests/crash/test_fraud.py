"""The fraud example is killed again and again, and every file that it writes has the bytes of a quiet run.

Workers are killed by the job itself, in `process_element`, in `on_timer` and when the second stage begins, and by the
test at random; the driver, the JVM and all of it at points of the commit protocol, K4 being between two stages and K9 between two sinks. Eight kills in
the suite, twenty with `scripts/long kills`.
"""

import contextlib
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from headrace.testing import run_local
from tests.crash import fraud_job
from tests.crash.killing import WHOLE_MATRIX, finish, launch, run, wait_until

pytestmark = pytest.mark.crash

JOB = Path(fraud_job.__file__)
SEED = int(os.environ.get("HEADRACE_KILL_SEED", "20250101"))
#: Slices of event time in which a worker dies, one epoch apart at least: Spark tries a task four times.
WISHES = {"element": (0, 5), "timer": (7,), "behind": (2, 6)}
FAULTS = ("K9:4:jvm",)
RANDOM_FROM, RANDOM_KILLS = 7, 2
if WHOLE_MATRIX:
    WISHES = {"element": (0, 4, 8, 12, 15), "timer": (7, 10, 13, 16), "behind": (2, 6, 9, 14)}
    FAULTS = ("K4:4:jvm", "K6:7:group", "K9:11:driver")
    RANDOM_FROM, RANDOM_KILLS = 12, 4
KILLS = sum(map(len, WISHES.values())) + len(FAULTS) + RANDOM_KILLS


def test_kills_change_no_byte(tmp_path: Path) -> None:
    root = tmp_path / "killed"
    wishes = [root / "kills" / f"{place}-{at}" for place, times in WISHES.items() for at in times]
    (root / "kills").mkdir(parents=True)
    for wish in wishes:
        wish.touch()
    for fault in FAULTS:
        killed = run(root, script=JOB, HEADRACE_FAULT=fault)
        code = 1 if fault.endswith("jvm") else -signal.SIGKILL
        assert killed.code == code, f"{fault} was not reached: {killed.said}"
    process = launch(root, script=JOB)
    try:
        killed_at_random = kill_workers(process, root)
    finally:
        ended = finish(process)
    assert killed_at_random == RANDOM_KILLS
    assert ended.code == 0, ended.said
    assert [wish.name for wish in wishes if wish.exists()] == []
    run_local(fraud_job.build(tmp_path / "quiet"))
    for name in ("alerts", "branches"):
        there, wanted = written(root / name), written(tmp_path / "quiet" / name)
        assert sum(map(len, wanted.values())) > 5_000, f"{name} says little, so it shows little"
        assert there == wanted, name


def kill_workers(process: subprocess.Popen[str], root: Path) -> int:
    """Kill one of the job's Python workers in some epochs of the last run; how many died of it."""
    draw, killed = random.Random(SEED), 0
    for epoch in range(RANDOM_FROM, RANDOM_FROM + RANDOM_KILLS):
        assert wait_until((root / f"state/spark/commits/{epoch}").exists)
        victims: list[int] = []
        assert wait_until(lambda: bool(victims.extend(workers(process.pid)) or victims), 20)  # noqa: B023 - called here
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(sorted(set(victims))), signal.SIGKILL)
            killed += 1
    return killed


def workers(driver: int) -> list[int]:
    """The Python workers of one job, forked from the daemon of its JVM; jobs of others are left alone."""
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()[1:]]
    children: dict[int, list[tuple[int, str]]] = {}
    for pid, parent, args in (row for row in rows if len(row) == 3):
        children.setdefault(int(parent), []).append((int(pid), args))
    below, found = [(driver, "")], []
    while below:
        parent, said = below.pop()
        for pid, args in children.get(parent, []):
            below.append((pid, args))
            if "pyspark.daemon" in said and "pyspark.daemon" in args:
                found.append(pid)
    return found


def written(folder: Path) -> dict[str, bytes]:
    """The content of files by epoch and place; what stands before is the random name of a checkpoint."""
    found = {p.name.partition("-")[2]: p.read_bytes() for p in folder.glob("*.jsonl")}
    return {name: body for name, body in sorted(found.items()) if body}
