"""The PostgreSQL sink and source against the kit that users prove theirs with: every kill, on a real server."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.connectors.databases import PostgresSource
from headrace.testing import check_source

pytestmark = pytest.mark.services


@pytest.fixture
def server(postgres: Any, table: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection
        connection.execute(f'drop table if exists "{table}"')


#: In a process of its own: the kit forks, and the one that runs the tests has threads of Spark and of Kafka's clients.
PROGRAM = """
import sys
from datetime import timedelta
import psycopg
from headrace.connectors.databases import PostgresSink
from headrace.testing import check_sink
dsn, table = sys.argv[1:]
server = psycopg.connect(dsn, autocommit=True)
def rows():
    found = server.execute(f'select key, number, note from "{table}" order by number_of_row')
    return [dict(zip(("key", "number", "note"), row)) for row in found.fetchall()]
patience = timedelta(minutes=1)  # a server that has just started, on a machine that is busy
print(len(check_sink(PostgresSink(dsn, table=table), rows, inside=4, patience=patience).scenarios))
"""


def test_the_sink_is_exactly_once(postgres: Any, table: str, server: psycopg.Connection) -> None:
    server.execute(
        f'create table "{table}" (number_of_row bigserial, key text, number bigint, note text)'
    )
    checked = subprocess.run(
        [sys.executable, "-c", PROGRAM, postgres.dsn, table],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert int(checked.stdout) > 20


def test_positions_of_the_source_keep_their_meaning(
    postgres: Any, table: str, server: psycopg.Connection
) -> None:
    server.execute(f'create table "{table}" as select n from generate_series(1, 2000) n')
    source = PostgresSource(postgres.dsn, table=table, partition_column="n", partitions=4)
    assert check_source(source).rows == 2000
