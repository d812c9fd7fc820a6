"""Rows beside those of a PostgreSQL table."""

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import headrace as hr
from headrace import testing
from headrace.connectors import memory
from headrace.connectors.databases import PostgresLookup
from headrace.errors import EngineError, InputError

pytestmark = pytest.mark.services

ORDERS = [{"id": n, "customer": None if n == 150 else n % 60} for n in range(200)]


@pytest.fixture
def table() -> str:
    return f"lookup_join_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def server(postgres: Any, table: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection
        connection.execute(f'DROP TABLE IF EXISTS "{table}"')


@pytest.fixture
def customers(postgres: Any, server: psycopg.Connection, table: str) -> PostgresLookup:
    server.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, name text, level int2)")
    server.execute(f"INSERT INTO {table} SELECT n, 'c' || n, n % 3 FROM generate_series(1, 50) n")
    return PostgresLookup(postgres.dsn, table, key="id")


def joined(
    rows: list[dict[str, Any]], table: Any, *, schema: Any = None, **options: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Any]:
    env, result, dead = hr.Environment("joined"), memory.MemorySink(), memory.MemorySink()
    stream = env.from_source(memory.MemorySource(rows, schema), uid="orders")
    made = stream.join_lookup(table, uid="join", **options)
    made.sink_to(result, uid="result")
    made.errors.sink_to(dead, uid="dead")
    ran = testing.run_local(env, epochs=hr.Epochs(rows=50), crashes=[(1, "staged")])
    return result.to_pylist(), dead.to_pylist(), ran


def test_columns_are_the_tables_and_the_key_stands_under_both_names(
    customers: PostgresLookup,
) -> None:
    found, dead, ran = joined(ORDERS, customers, on="customer")
    assert found[7] == {"id": 7, "customer": 7, "id_right": 7, "name": "c7", "level": 1}
    assert found[55] == {"id": 55, "customer": 55, "id_right": None, "name": None, "level": None}
    assert (len(found), dead, ran.metrics["join"]) == (200, [], {"null_keys": 1})


def test_an_inner_join_accounts_for_every_row(
    customers: PostgresLookup, postgres: Any, table: str
) -> None:
    named = PostgresLookup(postgres.dsn, table, key="id", columns=["name"])
    found, dead, ran = joined(ORDERS, named, on="customer", how="inner")
    kept = [n for n in range(200) if n != 150 and 1 <= n % 60 <= 50]
    assert [(row["id"], row["name"]) for row in found] == [(n, f"c{n % 60}") for n in kept]
    assert [row["cause"] for row in dead] == ["null key 'customer'"]
    filtered = 199 - len(kept)
    assert ran.counts["join"] == {"in": 200, "out": len(kept), "filtered": filtered, "dead": 1}


def test_values_of_many_types_fit_the_columns_that_the_server_says(
    postgres: Any, server: psycopg.Connection, table: str
) -> None:
    server.execute(
        f"CREATE TABLE {table} (k uuid PRIMARY KEY, n numeric(9, 2), big numeric, at timestamptz, local timestamp,"
        " day date, took interval, blob bytea, doc jsonb, tags text[], ids uuid[], net inet, ok boolean, f real)"
    )
    key = "0e37df36-f698-11e6-8dd4-cb9ced3df976"
    server.execute(
        f"INSERT INTO {table} VALUES (%s, 1.5, 2.25, '2025-03-01T10:00Z', '2025-03-01T10:00', '2025-03-01', '90 s',"
        f" '\\x0102', '{{\"a\": [1]}}', '{{a,b}}', ARRAY[%s::uuid], '10.0.0.1', true, 0.5)",
        (key, key),
    )
    lookup = PostgresLookup(postgres.dsn, table, key="k")
    (row,), _, _ = joined([{"id": 1, "k": key}], lookup, on="k")
    assert row == {
        "id": 1,
        "k": key,
        "n": Decimal("1.50"),
        "big": Decimal("2.25"),
        "at": datetime(2025, 3, 1, 10, tzinfo=UTC),
        "local": datetime(2025, 3, 1, 10),
        "day": date(2025, 3, 1),
        "took": timedelta(seconds=90),
        "blob": b"\x01\x02",
        "doc": '{"a": [1]}',
        "tags": ["a", "b"],
        "ids": [key],
        "net": "10.0.0.1/32",
        "ok": True,
        "f": 0.5,
    }
    plain = lookup.lookup_batch([key])[0]
    assert plain is not None
    assert plain["doc"] == {"a": [1]}, "what get() gives stays as it was"


def test_declared_columns_are_the_ones_that_are_read(
    postgres: Any, server: psycopg.Connection, table: str
) -> None:
    server.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, n numeric, doc jsonb, more text)")
    server.execute(f"""INSERT INTO {table} VALUES (1, 1.5, '{{"a": [1]}}', 'x')""")
    schema = {"doc": pa.struct({"a": pa.list_(pa.int64())}), "n": float, "k": str}
    lookup = PostgresLookup(postgres.dsn, table, key="k")
    env, result = hr.Environment("declared"), memory.MemorySink()
    stream = env.from_source(memory.MemorySource([{"key": 1}]), uid="rows")
    stream.join_lookup(lookup, on="key", schema=schema, uid="join").sink_to(result, uid="result")
    testing.run_local(env)
    assert result.to_pylist() == [{"key": 1, "doc": {"a": [1]}, "n": 1.5, "k": "1"}]


def test_keys_of_several_columns(postgres: Any, server: psycopg.Connection, table: str) -> None:
    server.execute(f"CREATE TABLE {table} (land char(4), no numeric, city text)")
    server.execute(f"INSERT INTO {table} VALUES ('NO', 7, 'Oslo'), ('IT', 8, 'Turin')")
    lookup = PostgresLookup(postgres.dsn, table, key=("land", "no"), columns=["city"])
    rows = [{"land": "IT", "no": 8}, {"land": "NO", "no": 8}, {"land": "NO", "no": 7}]
    found, _, _ = joined(rows, lookup, on=["land", "no"])
    assert [row["city"] for row in found] == ["Turin", None, "Oslo"]
    with pytest.raises(hr.errors.BuildError, match="the key of the table has 2: land, no"):
        joined(rows, lookup, on="land")


def test_a_key_that_the_server_refuses_is_a_dead_letter_alone(customers: PostgresLookup) -> None:
    rows = [{"id": n, "customer": 2**60 if n == 3 else n} for n in range(1, 9)]
    rows.append({"id": 9, "customer": -(2**70)})
    schema = pa.schema({"id": pa.int64(), "customer": pa.decimal128(30, 0)})
    found, dead, _ = joined(
        [{**row, "customer": Decimal(row["customer"])} for row in rows],
        customers,
        schema=schema,
        on="customer",
        how="inner",
        on_error="dead_letter",
    )
    assert [row["id"] for row in found] == [1, 2, 4, 5, 6, 7, 8]
    (letter,) = dead
    assert "out of range" in letter["cause"]
    assert letter["offset"] == 8


def test_what_cannot_be_looked_up_is_told_when_the_job_is_built(
    postgres: Any, customers: PostgresLookup, table: str
) -> None:
    with pytest.raises(InputError, match="no column nme; it has id, name, level"):
        joined(
            ORDERS, PostgresLookup(postgres.dsn, table, key="id", columns=["nme"]), on="customer"
        )
    with pytest.raises(InputError, match="does not exist"):
        joined(ORDERS, PostgresLookup(postgres.dsn, f"{table}_", key="id"), on="customer")
    away = PostgresLookup("postgresql://127.0.0.1:1/none", table, key="id")
    with pytest.raises(EngineError, match="looking at"):
        joined(ORDERS, away, on="customer")
