"""Runs the pipeline in a process group of its own, kills it, and waits until all of it is gone."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("pipeline.py")
PATIENCE_S = 240
#: Every point with every victim, each in its own job, and many random kills: `scripts/long kills`. The suite runs a sample.
WHOLE_MATRIX = os.environ.get("HEADRACE_KILL_MATRIX") == "all"
#: K2, a temporary file of Spark's that was not renamed, is made by hand in test_damage.
POINTS = ("K1", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10", "K11")
VICTIMS = ("group", "driver", "jvm")


@dataclass(frozen=True)
class Run:
    """How a run ended: exit code (negative: by that signal) and what it said."""

    code: int
    said: str


def launch(root: Path, *, script: Path = SCRIPT, **environment: str) -> subprocess.Popen[str]:
    """Start the pipeline; its process group is its own."""
    root.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [sys.executable, str(script), str(root)],
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[2]), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], patience_s: float = PATIENCE_S) -> Run:
    """Wait for the end, then end what is left of the group."""
    try:
        said, _ = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        end_group(process)
        said, _ = process.communicate()
        said += f"\n(killed: it ran for more than {patience_s} s)"
    end_group(process)
    return Run(process.returncode, said)


def run(root: Path, *, script: Path = SCRIPT, **environment: str) -> Run:
    """One run from start to end."""
    return finish(launch(root, script=script, **environment))


def end_group(process: subprocess.Popen[str]) -> None:
    """Kill whatever of the group still lives; the JVM of a killed driver ends by itself a little later."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def jvm_of(process: subprocess.Popen[str]) -> int | None:
    """The Java process of a run, or None while there is none."""
    for task in Path(f"/proc/{process.pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for pid in task.read_text().split():
                if "java" in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace"):
                    return int(pid)
    return None


def wait_until(condition: Callable[[], bool], patience_s: float = 120.0) -> bool:
    """Poll; False if it never came true."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False
