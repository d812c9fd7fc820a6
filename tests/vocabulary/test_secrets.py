"""Secrets by reference: where they are looked up, and what people may read."""

from pathlib import Path

import pytest

from headrace.errors import SetupError
from headrace.secrets import hidden, looked_up, looked_up_all


def test_a_reference_is_looked_up_and_anything_else_is_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "from the environment")
    (tmp_path / "secret").write_text("from a file\n")
    options = {"a": "env:A_SECRET", "b": f"file:{tmp_path}/secret", "c": "environment"}
    assert looked_up_all(options) == {
        "a": "from the environment",
        "b": "from a file",
        "c": "environment",
    }


def test_a_reference_to_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"password='env:NOWHERE': .*NOWHERE is not set"):
        looked_up("env:NOWHERE", "password")
    with pytest.raises(SetupError, match="password='file:/nowhere': the file cannot be read"):
        looked_up("file:/nowhere", "password")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(SetupError, match="the file cannot be read: it is not UTF-8"):
        looked_up(f"file:{tmp_path}/binary", "password")


def test_references_are_shown_and_secrets_are_not() -> None:
    options = {
        "sasl.username": "ada",
        "sasl.password": "hunter2",
        "ssl.key.password": "env:KEY",
        "ssl.key.pem": "-----BEGIN",
        "sasl.oauthbearer.client.secret": "hunter2",
        "linger.ms": "5",
    }
    assert hidden(options) == {
        **options,
        "sasl.password": "***",
        "ssl.key.pem": "***",
        "sasl.oauthbearer.client.secret": "***",
    }
