"""What is advised when a server refuses rows: the staged ones cannot change, so the table must."""

from typing import Any

import pyarrow as pa
import pytest

from headrace.connectors.databases.access import Access, access_to
from headrace.connectors.databases.conversion import converted
from headrace.connectors.databases.dialect import Cell, Dialect
from headrace.connectors.databases.mysql import MySqlDialect
from headrace.connectors.databases.pool import translated
from headrace.connectors.databases.postgres import PostgresDialect
from headrace.connectors.databases.session import Session
from headrace.errors import SinkRefused

STAGED = "the rows at hand are staged and stay as they are"
ACCESS = access_to("mysql://h/d", {})


def postgres_error(state: str) -> Exception:
    psycopg = pytest.importorskip("psycopg")
    error: Exception = psycopg.errors.lookup(state)("refused")
    return error


def mysql_error(code: int) -> Exception:
    error: Exception = pytest.importorskip("pymysql").MySQLError(code, "refused")
    return error


def told_by_a_sink(dialect: Dialect, error: Exception) -> str:
    def refuse(access: Access, purpose: str) -> Any:
        raise error

    dialect.connect = refuse  # type: ignore[method-assign]
    with (
        pytest.raises(SinkRefused) as caught,
        Session(dialect, ACCESS, "test").transaction("writing"),
    ):
        pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("state", "now", "later"),
    [
        ("23502", "drop NOT NULL", "give every row a value"),
        ("23514", "change the constraint", "filter the rows that break it"),
        ("22001", "widen the column", "cut the text"),
        ("22003", "widen the column", "filter such numbers"),
        ("22P02", "change the column of the table", "change that of the stream"),
        ("22021", "UTF8 database", "take it out"),
        ("22P05", "make the column json or text", "take it out"),
        ("21000", "let them differ there", "make them equal"),
    ],
)
def test_postgresql_is_to_change_its_table_first(state: str, now: str, later: str) -> None:
    told = told_by_a_sink(PostgresDialect(), postgres_error(state))
    places = [told.index(words) for words in (now, STAGED, "for later ones", later)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("code", "now", "later"),
    [
        (1048, "let the column be NULL", "give every row a value"),
        (1406, "widen the column", "cut the text"),
        (1264, "widen the column", "filter such numbers"),
    ],
)
def test_mysql_is_to_change_its_table_first(code: int, now: str, later: str) -> None:
    told = told_by_a_sink(MySqlDialect(), mysql_error(code))
    places = [told.index(words) for words in (now, STAGED, "for later ones", later)]
    assert places == sorted(places)


def test_a_reader_has_no_staged_rows() -> None:
    for dialect, error in (
        (PostgresDialect(), postgres_error("22003")),
        (MySqlDialect(), mysql_error(1264)),
    ):
        told = str(translated(dialect, ACCESS, error, "reading t"))
        assert told.startswith(f"{dialect.name} at mysql://h/d, reading t: refused")
        assert "staged" not in told


def test_values_that_do_not_fit_the_table_are_staged_too() -> None:
    rows = pa.table({"v": pa.array([2**40])})
    with pytest.raises(SinkRefused, match=f"widen the table's column, since {STAGED}; .* cast it"):
        converted(rows, [Cell("v", pa.int32(), "integer")])
