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
from collections.abc import Iterator, Sequence
from pathlib import Path

from memory_use import cpu_seconds, descendants

__all__ = ["AtWork", "ContenderFailed", "at_work", "cost_us", "flink_python", "measure"]

HERE = Path(__file__).resolve().parent
FLINK_HOME = HERE.parent / ".flink-venv"
FLINK = "apache-flink==2.3.0"


class ContenderFailed(Exception):
    """A contender did not come to its end; says why in a line."""


def measure(
    script: str, arguments: Sequence[object], *, python: str = sys.executable, limit_s: float = 600
) -> dict[str, float]:
    """What a script of `contenders/` or a file beside it measured."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        told, errors = Path(scratch, "told"), Path(scratch, "errors")
        code = _end(_begin(script, arguments, python, scratch), limit_s)
        if code != 0:
            why = f"not done in {limit_s:.0f} s" if code is None else _reason(errors, told)
            raise ContenderFailed(why)
        return _found(told)


class AtWork:
    """A contender that is running."""

    def __init__(self, process: "subprocess.Popen[bytes]", scratch: str) -> None:
        self._process, self._scratch = process, Path(scratch)

    def check(self) -> None:
        """Raise if it has ended."""
        if self._process.poll() is not None:
            raise ContenderFailed(_reason(self._scratch / "errors", self._scratch / "told"))

    def cpu_s(self) -> float:
        """Seconds of a core that it and all that it started have had; those that ended do not count."""
        return cpu_seconds(self._process.pid)


@contextlib.contextmanager
def at_work(
    script: str, arguments: Sequence[object], *, python: str = sys.executable
) -> Iterator[AtWork]:
    """A contender that never ends by itself: at work inside the `with`, ended behind it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        process = _begin(script, arguments, python, scratch)
        try:
            yield AtWork(process, scratch)
        finally:
            _kill(process)


def _begin(
    script: str, arguments: Sequence[object], python: str, scratch: str
) -> "subprocess.Popen[bytes]":
    command = [python, str(HERE / script), *(str(a) for a in arguments)]
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"TMPDIR": scratch, "PYTHONPATH": os.pathsep.join(paths)}
    with Path(scratch, "told").open("w") as out, Path(scratch, "errors").open("w") as err:
        return subprocess.Popen(command, env=env, cwd=scratch, stdout=out, stderr=err)


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
        _kill(process)
        if isinstance(error, subprocess.TimeoutExpired):
            return None
        raise


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """It and all that it started."""
    for pid in descendants(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


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
