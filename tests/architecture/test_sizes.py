"""Files and functions stay short enough to be read in one go."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sizes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sizes", ROOT / "scripts" / "sizes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_file_and_no_function_is_too_long(sizes: ModuleType) -> None:
    assert sizes.problems(ROOT) == []


def test_long_files_and_functions_are_found(sizes: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "headrace").mkdir()
    body = "def long():\n" + "    x = 1\n" * sizes.FUNCTION_LIMIT
    (tmp_path / "headrace" / "a.py").write_text(body + "\n" * sizes.FILE_LIMIT)
    assert sizes.problems(tmp_path) == [
        f"headrace/a.py: {sizes.FILE_LIMIT + sizes.FUNCTION_LIMIT + 1} lines, the limit is {sizes.FILE_LIMIT}",
        f"headrace/a.py:1: long has {sizes.FUNCTION_LIMIT + 1} lines, the limit is {sizes.FUNCTION_LIMIT}",
    ]
