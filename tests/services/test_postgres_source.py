"""The PostgreSQL source: ranges that hold every row once, the same after a restart, in the server's types."""

import secrets
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from headrace.connectors.databases import PostgresSource
from headrace.connectors.databases.pool import close_all
from headrace.errors import EngineError, InputError

pytestmark = pytest.mark.services


@pytest.fixture
def server(postgres: Any, table: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection
        close_all()
        connection.execute(f'drop table if exists "{table}"')


def ranges(source: PostgresSource, directory: Path) -> list[list[dict[str, Any]]]:
    """The rows of each position."""
    directory.mkdir(exist_ok=True)
    span = source.enumerator(directory).spans()["rows"]
    assert (span.first, span.finished) == (0, True)
    return [
        [row for one in source.read("rows", at, at + 1, directory) for row in one.batch.to_pylist()]
        for at in range(span.end)
    ]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", [-(2**63), 0, 2**63 - 1]),
        ("int", [n * n for n in range(-50, 50)]),
        ("numeric", [Decimal("0.1"), Decimal("0.2"), Decimal("1e20")]),
        ("date", [date(2024, 2, 28) + timedelta(days=n) for n in range(10)]),
        ("timestamptz", [datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(99)]),
        ("timestamp", [datetime(2025, 1, 1), datetime(2025, 1, 1, 0, 0, 0, 1)]),
        ("int", [7]),
        ("int", []),
    ],
)
def test_ranges_hold_every_row_once(
    kind: str,
    values: list[Any],
    postgres: Any,
    table: str,
    server: psycopg.Connection,
    tmp_path: Path,
) -> None:
    server.execute(f'create table "{table}" (v {kind})')
    server.cursor().executemany(
        f'insert into "{table}" values (%s)', [(v,) for v in [*values, None]]
    )
    source = PostgresSource(
        postgres.dsn,
        table=table,
        partition_column="v",
        partitions=4,
        schema=None if kind != "numeric" else {"v": pa.string()},
    )
    found = ranges(source, tmp_path / "source")
    assert len(found) <= 5
    assert found[-1] == [{"v": None}]
    read = [row["v"] for part in found for row in part if row["v"] is not None]
    if kind == "numeric":
        read = [Decimal(text) for text in read]
    assert sorted(read) == sorted(values)
    if len(values) > 50:
        assert min(map(len, found[:4])) > 5


def test_a_restart_reads_the_ranges_that_were_written_down(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute(f'create table "{table}" as select n from generate_series(0, 99) n')
    source = PostgresSource(postgres.dsn, table=table, partition_column="n", partitions=2)
    before = ranges(source, tmp_path / "source")
    server.execute(f'insert into "{table}" values (-1000), (1000)')
    after = ranges(source, tmp_path / "source")
    assert [len(part) for part in before] == [49, 51, 0]
    # Rows from before the first range and behind the last one are in those.
    assert [len(part) for part in after] == [50, 52, 0]
    assert ranges(source, tmp_path / "other") != after


def test_a_query_is_read_as_it_is_written(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute(
        f"create table \"{table}\" as select n, 'a%b' || n as t from generate_series(1, 9) n"
    )
    query = f"select t, n * 2 as twice from \"{table}\" where t like 'a%' and n < 4; -- all of 'em"
    source = PostgresSource(postgres.dsn, query=query.replace("; --", " --"))
    assert source.schema == pa.schema({"t": pa.string(), "twice": pa.int32()})
    (rows,) = ranges(source, tmp_path / "source")
    assert rows == [{"t": f"a%b{n}", "twice": 2 * n} for n in (1, 2, 3)]


def test_many_rows_come_in_batches_with_their_numbers(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute(f'create table "{table}" as select n from generate_series(0, 69999) n')
    source = PostgresSource(postgres.dsn, table=table)
    source.enumerator(tmp_path)
    batches = list(source.read("rows", 0, 1, tmp_path))
    assert [batch.batch.num_rows for batch in batches] == [30_000, 30_000, 10_000]
    assert batches[2].offsets[[0, -1]].tolist() == [60_000, 69_999]
    assert {batch.partition for batch in batches} == {"rows[0]"}


def test_columns_have_the_types_of_the_server(
    postgres: Any, table: str, server: psycopg.Connection
) -> None:
    server.execute(
        f'create table "{table}" (a smallint, b int, c bigint, d real, e float8, f numeric(12,3), g numeric, h text,'
        " i varchar(9), j boolean, k date, l time, m timestamptz, n timestamp, o interval, p bytea, q uuid, r jsonb,"
        " s int[], t text[], u inet, v numeric(60,2), w uuid[])"
    )
    us, wide = pa.timestamp("us"), pa.decimal128(38, 18)
    types = [
        *(
            pa.int16(),
            pa.int32(),
            pa.int64(),
            pa.float32(),
            pa.float64(),
            pa.decimal128(12, 3),
            wide,
        ),
        *(pa.string(), pa.string(), pa.bool_(), pa.date32(), pa.time64("us")),
        *(pa.timestamp("us", "UTC"), us, pa.duration("us"), pa.binary(), pa.string(), pa.string()),
        *(pa.list_(pa.int32()), pa.list_(pa.string()), pa.string(), wide, pa.list_(pa.string())),
    ]
    assert PostgresSource(postgres.dsn, table=table).schema.types == types


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "no_such_table_here"}, "does not exist"),
        ({"table": "{}", "schema": {"x": int}}, "no column 'x'; it has 'v', 't'"),
        ({"table": "{}", "partition_column": "x"}, "no column 'x'"),
        (
            {"table": "{}", "partition_column": "t", "partitions": 2},
            "partition_column='t' holds str",
        ),
        (
            {"table": "{}", "schema": {"v": pa.int8()}},
            "column 'v' holds a value that does not fit int8",
        ),
        ({"query": "select from where"}, "syntax error"),
    ],
)
def test_what_cannot_be_read_is_told(
    options: dict[str, Any],
    words: str,
    postgres: Any,
    table: str,
    server: psycopg.Connection,
    tmp_path: Path,
) -> None:
    server.execute(f"create table \"{table}\" as select 1000 as v, 'a' as t")
    given = {k: v.format(table) if isinstance(v, str) else v for k, v in options.items()}
    with pytest.raises(InputError, match=words):
        ranges(PostgresSource(postgres.dsn, **given), tmp_path / "source")


def test_a_lost_connection_is_an_error_to_run_the_epoch_again_for(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute(f'create table "{table}" as select n from generate_series(0, 69999) n')
    source = PostgresSource(
        postgres.dsn, table=table, options={"application_name": f"lost {table}"[:60]}
    )
    source.enumerator(tmp_path)
    reading = source.read("rows", 0, 1, tmp_path)
    next(reading)
    server.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = %s",
        (f"lost {table}"[:60],),
    )
    with pytest.raises(EngineError, match="reading"):
        list(reading)
    assert sum(one.batch.num_rows for one in source.read("rows", 0, 1, tmp_path)) == 70_000


def test_a_kept_connection_that_died_is_replaced(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute(f'create table "{table}" as select 1 as n')
    name = f"kept {secrets.token_hex(4)}"
    source = PostgresSource(postgres.dsn, table=table, options={"application_name": name})
    assert ranges(source, tmp_path / "source") == [[{"n": 1}]]
    asked = "select pid from pg_stat_activity where application_name = %s"
    assert len(server.execute(asked, (name,)).fetchall()) == 1
    server.execute(f"select pg_terminate_backend(pid, 5000) from ({asked}) p", (name,))
    assert ranges(source, tmp_path / "source") == [[{"n": 1}]]
