"""Imports point down, and what workers import stays small."""

import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]


def test_import_contracts_hold(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    broken = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert broken == 0, capfd.readouterr().out


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
