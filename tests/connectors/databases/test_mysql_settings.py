"""What PyMySQL is given of a DSN and of options: names as they are written, numbers as numbers."""

from typing import Any

import pytest

from headrace.connectors.databases.access import access_to
from headrace.connectors.databases.mysql import MySqlDialect
from headrace.errors import SetupError

pymysql = pytest.importorskip("pymysql")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the driver was called with."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(pymysql, "connect", lambda **settings: found.update(settings))
    return found


def connect(dsn: str, **options: str) -> None:
    MySqlDialect().connect(access_to(dsn, options), "test")


def test_names_and_passwords_of_digits_stay_texts(given: dict[str, Any]) -> None:
    connect("mysql://2023:2025@10/2024", passwd="7", program_name="8", ssl_key_password="9")
    texts = ["user", "password", "host", "database", "passwd", "program_name", "ssl_key_password"]
    assert [given[name] for name in texts] == ["2023", "2025", "10", "2024", "7", "8", "9"]


def test_numbers_and_flags_become_numbers(given: dict[str, Any]) -> None:
    connect("mysql://h:7/d?read_timeout=5&ssl_disabled=0", connect_timeout="3", local_infile="0")
    names = ["port", "read_timeout", "connect_timeout", "ssl_disabled", "local_infile"]
    assert [given[name] for name in names] == [7, 5, 3, 0, 0]


def test_the_password_of_the_options_goes_before_that_of_the_dsn(given: dict[str, Any]) -> None:
    connect("mysql://ada:one@h/d", password="2")
    assert given["password"] == "2"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"port": "many"}, "port must be a whole number"),
        ({"sslmode": "disable"}, "PyMySQL has no setting 'sslmode'"),
    ],
)
def test_settings_that_cannot_work_are_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(SetupError, match=words):
        connect("mysql://h/d", **options)
