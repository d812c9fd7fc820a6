"""Java that is missing, old or silent is refused with the command that mends it. Needs no Java."""

import os
from pathlib import Path

import pytest

from headrace._spark.java import check_java
from headrace.errors import SetupError


def java(home: Path, says: str) -> None:
    """A `java` that answers `-version` with this text."""
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)


def test_new_java_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path, 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java() == tmp_path / "bin" / "java"


@pytest.mark.parametrize(
    ("says", "found"), [('java version "1.8.0_402"', "Java 8"), ('openjdk version "11.0.1"', "11")]
)
def test_old_java_is_refused_with_its_version(
    says: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"needs Java 17 or newer.*{found}.*Install it with"):
        check_java()


def test_missing_java_is_refused_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep)
    with pytest.raises(SetupError, match="there is no java on PATH"):
        check_java()


def test_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(SetupError, match=r"JAVA_HOME is .*gone and has no bin/java"):
        check_java()


def test_java_that_does_not_say_its_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path, "hello")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="does not say its version; it printed: 'hello'"):
        check_java()
