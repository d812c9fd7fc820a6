"""Python in the documentation runs, page by page, and links between pages lead somewhere.

How blocks are found is said in tests/pages.py. Those that need servers are run by tests/services/test_docs.py.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import PAGES, ROOT, SERVERS, blocks, needed, run, run_page, titled
from tests.small_process import in_small_process

LINK = re.compile(r"\]\(([^)#]+?\.md)(?:#[^)]*)?\)")


#: It checks sinks, in processes that it forks.
FORKING = ROOT / "docs" / "guide" / "write-your-own-sink.md"


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=titled)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page == FORKING:
        in_small_process(run_page, page, tmp_path)
        return
    assert run(page, tmp_path, monkeypatch).keys() > {"__name__"}


def test_servers_that_pages_need_are_known() -> None:
    wrong = {titled(page): needed(page) - SERVERS for page in PAGES if needed(page) - SERVERS}
    assert wrong == {}
    assert [titled(p) for p in PAGES if needed(p) and not blocks(p, served=True)] == []


@pytest.mark.parametrize("page", PAGES, ids=titled)
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
