"""The files of the working tree are found with git and without it."""

import subprocess
from pathlib import Path

import pytest

from scripts.checkout import circumstances, files, outside_of_hooks

KEPT = {"headrace/a.py", "headrace/deep/b.java", "tests/test_a.py", "pyproject.toml"}
LEFT = {
    ".venv/lib/c.py",
    "build/d.py",
    "headrace/__pycache__/a.pyc",
    "tests/.hypothesis/e",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for name in KEPT | LEFT:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def names(tree: Path) -> set[str]:
    return {str(path) for path in files(tree)}


def test_a_repository_has_what_git_does_not_ignore(tree: Path) -> None:
    (tree / ".gitignore").write_text("build/\n.venv/\n__pycache__/\n.hypothesis/\n")
    subprocess.run(["git", "init", "-q"], cwd=tree, env=outside_of_hooks(), check=True)
    assert names(tree) == KEPT | {".gitignore"}


def test_an_archive_has_the_files_of_its_folders_without_caches(tree: Path) -> None:
    assert names(tree) == KEPT


def test_without_git_the_files_are_the_same_and_the_commit_is_unknown(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert names(tree) == KEPT
    assert "commit unknown," in circumstances("scripts/long kills")


def test_a_checkout_of_another_owner_has_all_of_its_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modules = {path for path in files() if path.suffix == ".py"}
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert {path for path in files() if path.suffix == ".py"} == modules
    assert Path("headrace/__init__.py") in modules


def test_a_hook_of_another_repository_changes_neither_files_nor_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, commit = files(), circumstances("").split(",")[1]
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert (files(), circumstances("").split(",")[1]) == (found, commit)
