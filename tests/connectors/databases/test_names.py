"""Names of tables and columns: what they mean, and that none of them can end a statement."""

import pytest

from headrace.connectors.databases.mysql import MySqlDialect
from headrace.connectors.databases.names import TableName, parse_table
from headrace.connectors.databases.postgres import PostgresDialect
from headrace.errors import BuildError


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("revenue", TableName("revenue")),
        ("Sales.Revenue", TableName("Revenue", "Sales")),
        ('"a.b"', TableName("a.b")),
        ('"a""b".c', TableName("c", 'a"b')),
        ("x; drop table y", TableName("x; drop table y")),
        ("größe.✓", TableName("✓", "größe")),
        ("it's", TableName("it's")),
    ],
)
def test_a_name_means_what_it_says(text: str, table: TableName) -> None:
    assert parse_table(text, "table", longest=63) == table


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a.b.c", '"', '"a', 'a"b', '""', "a\0b", "x" * 64, "é" * 32, None]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(BuildError, match="table"):
        parse_table(text, "table", longest=63)


def test_quotes_in_names_are_doubled() -> None:
    assert PostgresDialect().place(TableName('a"; --', "b")) == '"b"."a""; --"'
    assert MySqlDialect().place(TableName("a`; --", "b")) == "`b`.`a``; --`"
