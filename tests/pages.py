"""The pages of the documentation and the Python in them.

A block below a comment that says `not run` belongs to another system. A comment `needs: kafka postgres` names servers:
below the title of a page for all its blocks, above a block for that one. Such blocks are run by tests/services.
"""

import re
from pathlib import Path

import pytest

from headrace import environment, testing

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SERVERS = {"kafka", "postgres", "registry"}

_BLOCK = re.compile(r"(<!-- (?:not run|needs:)[^\n]*-->\n)?```python\n(.*?)```", re.DOTALL)
_ALL_NEED = re.compile(r"# [^\n]*\n\n<!-- needs: [a-z ]+ -->\n\n")
_NEEDS = re.compile(r"<!-- needs: ([a-z ]+?) -->")


def titled(page: Path) -> str:
    """A page as tests call it."""
    return str(page.relative_to(ROOT))


def blocks(page: Path, *, served: bool = False) -> list[str]:
    """The blocks that run (with servers or without), each moved down to its line so that a traceback names the right one."""
    text = page.read_text()
    all_need = _ALL_NEED.match(text) is not None
    return [
        "\n" * text[: found.start(2)].count("\n") + found[2]
        for found in _BLOCK.finditer(text)
        if "not run" not in (found[1] or "")
        and (all_need or "needs:" in (found[1] or "")) == served
    ]


def needed(page: Path) -> set[str]:
    """The servers that blocks of a page need."""
    return {name for names in _NEEDS.findall(page.read_text()) for name in names.split()}


def run(
    page: Path, directory: Path, monkeypatch: pytest.MonkeyPatch, *, served: bool = False
) -> dict[str, object]:
    """Run the blocks of a page in one namespace, top to bottom; `execute()` runs in this process, not on Spark."""
    monkeypatch.chdir(directory)
    monkeypatch.setattr(environment.Environment, "execute", testing.run_local)
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks(page, served=served):
        exec(compile(block, str(page), "exec"), namespace)
    return namespace


def run_page(page: Path, directory: Path) -> None:
    """`run`, for another process."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        run(page, directory, monkeypatch)
