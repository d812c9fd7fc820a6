"""The pictures of the guide show what the code does."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
GENERATORS = {"pictures": GUIDE / "pictures", "join_pictures": GUIDE / "pictures" / "joins"}
FILES = [
    (name, stem)
    for name, folder in GENERATORS.items()
    for stem in sorted(path.stem for path in folder.glob("*.svg"))
]


@pytest.fixture(scope="module")
def drawing() -> dict[str, ModuleType]:
    loaded = {}
    for name in GENERATORS:
        spec = importlib.util.spec_from_file_location(
            name, ROOT / "docs" / "generate" / f"{name}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        # Dataclasses look for the module they are defined in.
        loaded[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded[name])
    return loaded


@pytest.mark.parametrize("name", GENERATORS)
def test_there_is_a_file_for_every_picture(name: str, drawing: dict[str, ModuleType]) -> None:
    assert GENERATORS[name] == drawing[name].FOLDER
    assert sorted(drawing[name].PICTURES) == [stem for of, stem in FILES if of == name]


@pytest.mark.parametrize(("name", "stem"), FILES)
def test_the_file_is_what_the_code_draws(
    name: str, stem: str, drawing: dict[str, ModuleType]
) -> None:
    drawn = drawing[name].draw(drawing[name].PICTURES[stem])
    path = GENERATORS[name] / f"{stem}.svg"
    assert path.read_text() == drawn, f"run: python docs/generate/{name}.py"


def test_every_picture_is_shown_in_the_guide() -> None:
    pages = "\n".join(page.read_text() for page in GUIDE.glob("*.md"))
    places = [(GENERATORS[name] / f"{stem}.svg").relative_to(GUIDE) for name, stem in FILES]
    assert [place for place in places if f"({place})" not in pages] == []


@pytest.mark.parametrize("name", GENERATORS)
def test_the_docs_build_draws_them(name: str) -> None:
    assert f"- docs/generate/{name}.py" in (ROOT / "mkdocs.yml").read_text()
