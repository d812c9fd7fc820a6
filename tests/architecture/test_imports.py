"""Imports point down, and what workers import stays small."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_import_contracts_hold() -> None:
    """In a process of its own: the linter silences every logger of the one that it runs in."""
    lint = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    checked = subprocess.run(
        [sys.executable, "-c", lint], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("statement", ["import headrace", "import headrace; headrace.Environment"])
def test_the_facade_does_not_load_pyspark(statement: str) -> None:
    heavy = "[m for m in ('pyspark', 'py4j', 'pandas') if m in sys.modules]"
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print({heavy})"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"
