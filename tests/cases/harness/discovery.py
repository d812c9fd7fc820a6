"""Finds the cases: every `Case` of a module in a folder of `tests/cases`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.cases.harness.case import Case

__all__ = ["all_cases"]

_CASES: Final = Path(__file__).parents[1]


def all_cases() -> Iterator[tuple[str, Case]]:
    """Each with its name: "windows/tumbling", and the variable if a file has several cases."""
    for path in sorted(_CASES.glob("*/*.py")):
        if path.parent.name in ("harness", "__pycache__"):
            continue
        module = importlib.import_module(f"tests.cases.{path.parent.name}.{path.stem}")
        found = {name: value for name, value in vars(module).items() if isinstance(value, Case)}
        if not found:
            raise LookupError(f"{path} has no case")
        for name, case in found.items():
            short = f"{path.parent.name}/{path.stem}"
            yield (short if name == "CASE" else f"{short}:{name.lower()}"), case
