"""Runs a contender in a process of its own, and gives it what it needs: an empty directory, a limit of time.

A contender prints what it measured as one line of JSON, its last. Memory, JVMs and warm caches of one cannot reach
another, and what one leaves behind goes with its directory.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from memory_use import descendants

__all__ = ["ContenderFailed", "cost_us", "flink_python", "measure"]

HERE = Path(__file__).resolve().parent
FLINK_HOME = HERE.parent / ".flink-venv"
FLINK = "apache-flink==2.3.0"


class ContenderFailed(Exception):
    """A contender did not come to its end; says why in a line."""


def measure(
    script: str, arguments: Sequence[object], *, python: str = sys.executable, limit_s: float = 600
) -> dict[str, float]:
    """What a script of `contenders/` or a file beside it measured."""
    command = [python, str(HERE / script), *(str(a) for a in arguments)]
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        env = os.environ | {"TMPDIR": scratch, "PYTHONPATH": os.pathsep.join(paths)}
        told, errors = Path(scratch, "told"), Path(scratch, "errors")
        with told.open("w") as out, errors.open("w") as err:
            process = subprocess.Popen(command, env=env, cwd=scratch, stdout=out, stderr=err)
            code = _end(process, limit_s)
        if code != 0:
            why = f"not done in {limit_s:.0f} s" if code is None else _reason(errors, told)
            raise ContenderFailed(why)
        return _found(told)


def cost_us(found: dict[str, float]) -> float:
    """Microseconds a row."""
    if not found["rows"]:
        raise ContenderFailed("all rows were read before the clock began; give it more --rows")
    return found["seconds"] * 1e6 / found["rows"]


def _end(process: subprocess.Popen[bytes], limit_s: float) -> int | None:
    """The exit code, or None if it had to be ended together with all that it started."""
    try:
        return process.wait(limit_s)
    except BaseException as error:
        for pid in descendants(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return None
        raise


def _found(told: Path) -> dict[str, float]:
    try:
        found: dict[str, float] = json.loads(told.read_text().strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise ContenderFailed("ended well but did not say what it measured") from None
    return found


def _reason(errors: Path, told: Path) -> str:
    """The line that says most: the innermost Java cause, or the last line of a Python traceback."""
    lines = [line.strip() for line in (told.read_text() + errors.read_text()).splitlines()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    said = causes or [line for line in lines if line]
    return said[-1][:300] if said else "ended without a word"


def flink_python() -> str:
    """The interpreter of an environment that has Flink; made once, beside the repository's own."""
    python = FLINK_HOME / "bin" / "python"
    if not (FLINK_HOME / "made").exists():
        print(f"installing {FLINK} into {FLINK_HOME} (once)", file=sys.stderr, flush=True)
        if uv := shutil.which("uv"):
            subprocess.run(
                [uv, "venv", "-q", "--clear", "--python", "3.11", FLINK_HOME], check=True
            )
            subprocess.run([uv, "pip", "install", "-q", "--python", python, FLINK], check=True)
        else:
            subprocess.run([sys.executable, "-m", "venv", "--clear", FLINK_HOME], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", FLINK], check=True)
        (FLINK_HOME / "made").touch()
    return str(python)
