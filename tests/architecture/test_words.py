"""Words and paths that may not stand in the repository."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = {".py", ".md", ".toml", ".txt", ".java", ".properties", ".sh", ""}

# Names that say nothing about what a thing does. "base" is left out: a chunk is a base or a delta.
EMPTY_NAMES = set("util utils helper helpers common manager impl data info".split())

# In pieces, so that this file does not contain what it looks for.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:wo" r"rk|ro" r"ot|ho" r"me/\w+)/"),
    "a number of the tracker": re.compile(r"\bissue" r"s? ?#?\d+", re.IGNORECASE),
    "an unfinished mark": re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"),
    "a download address": re.compile(
        r"(?:py" r"pi\.org|files\.python" r"hosted|--index" r"-url|repo1\.maven)"
    ),
}


def tracked() -> list[Path]:
    """The files that a commit would hold; all of them when this is not a git checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    names = listed.stdout.decode().split("\0") if listed.returncode == 0 else []
    paths = [ROOT / n for n in names if n] or [
        p for part in ("headrace", "tests", "docs") for p in (ROOT / part).rglob("*.*")
    ]
    return [p for p in paths if p.is_file() and p.suffix in TEXT]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_holds(what: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert found == []


def test_names_say_what_things_do() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "headrace").rglob("*.py"))
        for name in (path.stem, path.parent.name, *_defined(path))
        if EMPTY_NAMES & set(_words(name))
    ]
    assert found == []


def test_words_of_a_name_are_told_apart() -> None:
    assert _words("_StateManager_for2Data") == ["state", "manager", "for", "data"]


def _defined(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _words(name: str) -> list[str]:
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
