"""The PostgreSQL sink and source against the kit that users prove theirs with: every kill, on a real server."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from headrace.connectors.databases import PostgresSink, PostgresSource
from headrace.testing import check_sink, check_source

pytestmark = pytest.mark.services


@pytest.fixture
def server(postgres: Any, table: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection
        connection.execute(f'drop table if exists "{table}"')


def test_the_sink_is_exactly_once(postgres: Any, table: str, server: psycopg.Connection) -> None:
    server.execute(
        f'create table "{table}" (number_of_row bigserial, key text, number bigint, note text)'
    )

    def rows() -> list[dict[str, Any]]:
        found = server.execute(f'select key, number, note from "{table}" order by number_of_row')
        return [dict(zip(("key", "number", "note"), row, strict=True)) for row in found.fetchall()]

    patience = timedelta(minutes=1)  # a server that has just started, on a machine that is busy
    report = check_sink(PostgresSink(postgres.dsn, table=table), rows, inside=4, patience=patience)
    assert len(report.scenarios) > 20


def test_positions_of_the_source_keep_their_meaning(
    postgres: Any, table: str, server: psycopg.Connection
) -> None:
    server.execute(f'create table "{table}" as select n from generate_series(1, 2000) n')
    source = PostgresSource(postgres.dsn, table=table, partition_column="n", partitions=4)
    assert check_source(source).rows == 2000
