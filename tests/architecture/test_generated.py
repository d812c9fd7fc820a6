"""Pages that are made from the code are what the code makes, and none is made with an option left out."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def generator(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"generate_{name}", DOCS / "generate" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    # Dataclasses look for the module they are defined in.
    monkeypatch.setitem(sys.modules, made.__name__, made)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("name", ["options", "support"])
def test_the_page_is_what_the_code_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = generator(name, monkeypatch)
    assert made.PAGE.read_text() == made.page(), f"run: python docs/generate/{name}.py"


def test_an_option_without_a_sentence_ends_the_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    options = generator("options", monkeypatch)
    monkeypatch.delitem(options.SENTENCES["KafkaSink"], "lanes")
    with pytest.raises(SystemExit, match=r"KafkaSink: options without a sentence \['lanes'\]"):
        options.page()


def test_a_sentence_without_an_option_ends_the_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    options = generator("options", monkeypatch)
    monkeypatch.setitem(options.SENTENCES["Json"], "indent", "How far.")
    with pytest.raises(SystemExit, match=r"sentences without an option \['indent'\]"):
        options.page()


def test_sentences_for_a_class_that_is_not_public_end_the_generation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = generator("options", monkeypatch)
    monkeypatch.setitem(options.SENTENCES, "RabbitSource", {})
    with pytest.raises(SystemExit, match="RabbitSource"):
        options.page()
