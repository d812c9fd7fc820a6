"""Fetching Java programs, with a stand-in for Java: whole or not at all, once, and a clear word when it fails."""

from pathlib import Path

import pytest

from headrace._services.jars import Artifact, Product, fetched
from headrace.errors import SetupError

PRODUCT = Product("thing", "The Thing", "1.0", 3, (Artifact("org.thing", "thing", "1.0"),))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "headrace" / "services"


def _java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """`$last` is the last argument: where files go."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    version = '[ "$1" = -version ] && { echo \'openjdk version "17.0.1"\' >&2; exit 0; }'
    program.write_text(f"#!/bin/sh\n{version}\nfor last; do :; done\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))


def test_product_is_fetched_once_with_a_line_that_says_so(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _java(tmp_path, monkeypatch, 'echo content > "$(dirname "$last")/thing-1.0.jar"')
    place = fetched(PRODUCT)
    assert place == cache / "thing-1.0"
    assert (place / "thing-1.0.jar").read_text() == "content\n"
    assert capsys.readouterr().err == "fetching The Thing 1.0 (3 MB), once\n"
    _java(tmp_path, monkeypatch, "exit 1")
    assert fetched(PRODUCT) == place
    assert capsys.readouterr().err == ""


def test_download_that_fails_leaves_nothing_and_says_what_to_do(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        'echo half > "$(dirname "$last")/thing-1.0.jar"\necho ":: thing;1.0: not found"\nexit 1'
    )
    _java(tmp_path, monkeypatch, script)
    with pytest.raises(SetupError) as raised:
        fetched(PRODUCT)
    assert "Check the network" in str(raised.value)
    assert f"copy {cache}/thing-1.0 from" in str(raised.value)
    assert ":: thing;1.0: not found" in str(raised.value)
    assert list(cache.iterdir()) == []


def test_without_java_the_remedy_is_named(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(SetupError, match="Java 17 or newer"):
        fetched(PRODUCT)
