"""Runs what takes too long for the suite and writes its outcome, with the date and the commit, to tests/long/NAME.md.

    scripts/long                    the names, with a line each
    scripts/long kills              the run
    scripts/long kills -k driver    with more arguments for pytest

What is written is the summary at the end of the run; exit code and output are those of the run. A run with more
arguments says so by its command.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scripts import checkout

__all__ = ["RUNS", "LongRun", "main", "overview", "report"]

ROOT: Path = checkout.ROOT
#: Everything from here on in pytest's output is its summary.
_SUMMARY = "ring  "


@dataclass(frozen=True)
class LongRun:
    """One that can be asked for."""

    says: str
    #: Of Python.
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Whether the program itself writes its outcome.
    writes: bool = False


def _pytest(*arguments: str) -> tuple[str, ...]:
    return ("-m", "pytest", "-q", "-n", "2", *arguments)


RUNS = {
    "explore": LongRun(
        "the pure ring with all combinations and twenty times as many examples, drawn anew",
        _pytest("--ring", "pure"),
        {"HEADRACE_EXPLORE": "1"},
    ),
    "kills": LongRun(
        "each kill point with each victim, each in its own job",
        _pytest("--ring", "crash"),
        {"HEADRACE_KILL_MATRIX": "all"},
    ),
    "mutations": LongRun(
        "which ring finds each of the small bugs in tests/mutations",
        ("scripts/mutations.py",),
        writes=True,
    ),
    "simulator": LongRun(
        "10,000 seeds of kills against the commit protocol",
        _pytest("tests/commit/test_simulator.py"),
        {"HEADRACE_SIMULATOR_SEEDS": "10000"},
    ),
}


def main(arguments: Sequence[str]) -> int:
    """List, or run, show and write; the exit code of the run."""
    if not arguments or arguments[0] not in RUNS:
        print(overview(), file=sys.stderr if arguments else sys.stdout)
        return 2 if arguments else 0
    name, *more = arguments
    run = RUNS[name]
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, *run.arguments, *more],
        cwd=ROOT,
        env={**os.environ, **run.environment},
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            said.append(line.rstrip())
    if not run.writes:
        folder = ROOT / "tests" / "long"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.md").write_text(report(name, more, said))
    return running.returncode


def overview() -> str:
    """The names, with a line each."""
    return "\n".join(f"{name:12}{run.says}" for name, run in RUNS.items())


def report(name: str, more: Sequence[str], said: Sequence[str]) -> str:
    """The file of one run: when, of which commit, on what, and the end of what it said."""
    start = next((at for at, line in enumerate(said) if line.startswith(_SUMMARY)), 0)
    variables = (f"{key}={value}" for key, value in RUNS[name].environment.items())
    command = " ".join([*variables, "python", *RUNS[name].arguments, *more])
    lines = [f"# scripts/long {name}", "", checkout.circumstances(command), "", "```"]
    return "\n".join([*lines, *said[start:], "```", ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
