"""Whole jobs from tables to tables, with crashes: what SQL says of the source is what the sinks hold."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

import headrace as hr
from headrace._local.job import POINTS
from headrace.connectors.databases import PostgresSink, PostgresSource
from headrace.connectors.databases.pool import close_all
from headrace.testing import run_local

pytestmark = pytest.mark.services

ROWS = 400


@pytest.fixture
def server(postgres: Any, table: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(
            f'create table "{table}" as select n as id, n % 7 as customer, (n * 1.25)::numeric(9, 2) as price,'
            " timestamptz '2025-01-01 00:00Z' + n * interval '1 second' as at"
            f" from generate_series(1, {ROWS}) n"
        )
        yield connection
        close_all()
        for suffix in ("", "_copy", "_revenue", "_marks"):
            connection.execute(f'drop table if exists "{table}{suffix}"')


def job(dsn: str, table: str) -> hr.Environment:
    """Orders as they are, and revenue by customer and minute, told early and withdrawn when it changes."""
    marks = f"{table}_marks"
    env = hr.Environment("orders", epochs=hr.Epochs(rows=1))
    watermarks = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=90))
    orders = env.from_source(
        PostgresSource(dsn, table=table, partition_column="id", partitions=5),
        watermarks=watermarks.with_timestamps("at"),
        uid="orders",
    )
    orders.sink_to(
        PostgresSink(dsn, table=f"{table}_copy", create=True, marker_table=marks), uid="copy"
    )
    revenue = (
        orders.key_by("customer")
        .window(hr.windows.Tumbling(timedelta(minutes=1)))
        .trigger(hr.triggers.count(2))
        .retracting()
        .aggregate(revenue=hr.sum("price"), rows=hr.count(), uid="revenue")
    )
    revenue.sink_to(
        PostgresSink(
            dsn,
            table=f"{table}_revenue",
            mode="upsert",
            key=("customer", "window_start"),
            create=True,
            marker_table=marks,
        ),
        uid="out",
    )
    return env


@pytest.mark.parametrize(
    "crashes", [[], *([(epoch, point) for epoch in (0, 2, 6)] for point in POINTS)]
)
def test_tables_hold_what_sql_says_whatever_crashes(
    crashes: list[Any], postgres: Any, table: str, server: psycopg.Connection
) -> None:
    result = run_local(job(postgres.dsn, table), shards=2, tasks=2, crashes=crashes)
    assert result.finished
    assert result.restarts == len(crashes)
    copied = f'select * from "{table}_copy" except all select * from "{table}"'
    assert server.execute(copied).fetchall() == []
    assert server.execute(f'select count(*) from "{table}_copy"').fetchone() == (ROWS,)
    # A count trigger tells of every second row; the end of a window does not tell of the last odd one.
    wanted = server.execute(
        "select customer, window_start, count(*) / 2 * 2 from (select *, date_trunc('minute', at) as window_start"
        f' from "{table}") o group by 1, 2 having count(*) > 1 order by 1, 2'
    ).fetchall()
    found = server.execute(
        f'select customer, window_start, rows from "{table}_revenue" order by 1, 2'
    ).fetchall()
    assert found == wanted
    shown = server.execute(f'select sink, epoch, fence from "{table}_marks" order by 1').fetchall()
    last = result.epochs[-1].number
    assert shown == [("copy", last, len(crashes) + 1), ("out", last, len(crashes) + 1)]
