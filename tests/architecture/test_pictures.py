"""The pictures of the guide show what the code does."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location(
    "pictures", ROOT / "docs" / "generate" / "pictures.py"
)
assert SPEC is not None
pictures = importlib.util.module_from_spec(SPEC)


@pytest.fixture(scope="module", autouse=True)
def _load() -> None:
    import sys

    assert SPEC is not None
    assert SPEC.loader is not None
    # Dataclasses look for the module they are defined in.
    sys.modules["pictures"] = pictures
    SPEC.loader.exec_module(pictures)


NAMES = sorted(path.stem for path in (ROOT / "docs" / "guide" / "pictures").glob("*.svg"))


def test_there_is_a_picture_for_every_one_that_is_drawn() -> None:
    assert sorted(pictures.PICTURES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_what_the_code_draws(name: str) -> None:
    path = ROOT / "docs" / "guide" / "pictures" / f"{name}.svg"
    drawn = pictures.draw(pictures.PICTURES[name])
    assert path.read_text() == drawn, "run: python docs/generate/pictures.py"


def test_every_picture_is_shown_in_the_guide() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "guide").glob("*.md"))
    assert [name for name in NAMES if f"pictures/{name}.svg" not in pages] == []
