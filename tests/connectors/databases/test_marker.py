"""The marker's row is locked in the words of each server."""

from typing import Any

import pytest

from headrace.connectors.databases.dialect import Dialect
from headrace.connectors.databases.marker import Mark, Marker
from headrace.connectors.databases.mysql import MySqlDialect
from headrace.connectors.databases.names import TableName
from headrace.connectors.databases.postgres import PostgresDialect


class Recording:
    """A cursor that finds one row."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def execute(self, statement: str, parameters: Any) -> None:
        self.asked.append((statement, parameters))

    def fetchone(self) -> tuple[int, int]:
        return 3, 1


@pytest.mark.parametrize(("dialect", "quote"), [(PostgresDialect(), '"'), (MySqlDialect(), "`")])
def test_the_row_is_locked_before_it_is_believed(dialect: Dialect, quote: str) -> None:
    cursor, marker = Recording(), Marker(dialect, TableName("m%", "s"), "i", "out")
    assert marker.lock(cursor, 1) == Mark(3, 1)
    statement = (
        "SELECT 'epoch', 'fence' FROM 's'.'m%%' WHERE 'incarnation' = %s AND 'sink' = %s FOR UPDATE"
    )
    assert cursor.asked == [(statement.replace("'", quote), ("i", "out"))]
