"""The scripts stop at the first failure and stay short."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHELL = [p for p in sorted((ROOT / "scripts").iterdir()) if p.is_file() and p.suffix != ".py"]


@pytest.mark.parametrize("script", SHELL, ids=lambda p: p.name)
def test_a_script_has_under_ten_lines(script: Path) -> None:
    assert script.read_text().count("\n") < 10


@pytest.mark.parametrize("script", [p for p in SHELL if p.name != "setup"], ids=lambda p: p.name)
def test_a_script_can_be_run(script: Path) -> None:
    assert os.access(script, os.X_OK)


@pytest.mark.parametrize("failing", ["ruff", "mypy", "lint-imports", "python"])
def test_check_fails_if_one_tool_fails(failing: str, tmp_path: Path) -> None:
    assert _check(tmp_path, failing) != 0


def test_check_passes_if_all_tools_pass(tmp_path: Path) -> None:
    assert _check(tmp_path, None) == 0


def _check(home: Path, failing: str | None) -> int:
    """Run scripts/check with stand-ins for its tools; one of them fails."""
    shutil.copytree(ROOT / "scripts", home / "scripts")
    (home / ".venv" / "bin").mkdir(parents=True)
    for name in ("pyproject.toml", "requirements-dev.txt"):
        (home / name).touch()
        os.utime(home / name, (0, 0))
    (home / ".venv" / ".made").touch()
    for tool in ("ruff", "mypy", "lint-imports", "python"):
        path = home / ".venv" / "bin" / tool
        path.write_text(f"#!/bin/sh\nexit {int(tool == failing)}\n")
        path.chmod(0o755)
    done = subprocess.run([home / "scripts" / "check"], capture_output=True, check=False)
    return done.returncode
