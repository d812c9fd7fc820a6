"""The files of the working tree and its commit, as git knows them.

An archive without history, a checkout that git does not trust (of another owner) and a machine without git have no
commit; their files are those of the folders that a checkout has.
"""

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["ROOT", "circumstances", "files", "outside_of_hooks"]

ROOT = Path(__file__).resolve().parent.parent

_FOLDERS = ("benchmarks", "docs", "examples", "headrace", "scripts", "tests")
#: In a hook they name the repository that a command works on, wherever it runs.
_OF_HOOKS = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE")


def files(root: Path = ROOT) -> list[Path]:
    """What a commit of everything would hold, relative to the root."""
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    named = [Path(name) for name in listed.split("\0") if name]
    return [path for path in named if (root / path).is_file()] or sorted(_found(root))


def circumstances(command: str) -> str:
    """When a run was made, of which commit, on what, and by which command."""
    commit = _git(ROOT, "describe", "--always", "--dirty", "--exclude=*").strip() or "unknown"
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}, {os.cpu_count()} cores,"
        f" Python {platform.python_version()}: `{command}`"
    )


def outside_of_hooks() -> Mapping[str, str]:
    """The environment for a git that finds its repository by the directory in which it runs."""
    return {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}


def _git(root: Path, *arguments: str) -> str:
    """What it prints; nothing if it refuses, or if there is none."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=root,
            env=outside_of_hooks(),
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def _found(root: Path) -> Iterator[Path]:
    """Hidden ones are caches, or belong to an editor."""
    inside = (path for folder in _FOLDERS for path in (root / folder).rglob("*"))
    for path in (*root.glob("*"), *inside):
        name = path.relative_to(root)
        if path.is_file() and not any(p.startswith((".", "__pycache__")) for p in name.parts):
            yield name
