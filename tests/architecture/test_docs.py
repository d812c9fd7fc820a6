"""Python in the documentation runs, page by page, and links between pages lead somewhere.

The blocks of a page share one namespace, top to bottom. `execute()` runs in this process instead of on
Spark. A block that belongs to another system stands below a comment that says `not run`.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import environment, testing

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(<!-- not run[^\n]*-->\n)?```python\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+?\.md)(?:#[^)]*)?\)")


def blocks(page: Path) -> list[str]:
    """The blocks that run, each moved down to its line so that a traceback names the right one."""
    text = page.read_text()
    return [
        "\n" * text[: m.start(2)].count("\n") + m[2] for m in BLOCK.finditer(text) if m[1] is None
    ]


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment.Environment, "execute", testing.run_local)
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), namespace)
    assert namespace.keys() > {"__name__"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert missing == []


def test_every_page_is_reached_from_the_index() -> None:
    seen: set[Path] = set()
    queue = [ROOT / "docs" / "index.md"]
    while queue:
        page = queue.pop().resolve()
        if page not in seen and page.exists():
            seen.add(page)
            queue += [page.parent / link for link in LINK.findall(page.read_text())]
    assert sorted(set((ROOT / "docs").rglob("*.md")) - seen) == []


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "guide" / "time-and-windows.html").exists()
