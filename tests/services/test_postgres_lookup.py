import asyncio
import pickle
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import headrace as hr
from headrace import testing
from headrace.connectors import memory
from headrace.connectors.databases import PostgresLookup
from headrace.errors import BuildError, EngineError, InputError

pytestmark = pytest.mark.services


@pytest.fixture
def table() -> str:
    return f"lookup_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def server(postgres: Any, table: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection
        connection.execute(f'DROP TABLE IF EXISTS "{table}"')


@pytest.fixture
def customers(postgres: Any, server: psycopg.Connection, table: str) -> PostgresLookup:
    server.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, name text, since timestamptz)")
    server.execute(
        f"INSERT INTO {table} SELECT n, 'c' || n, '2025-01-01Z' FROM generate_series(1, 50) n"
    )
    return PostgresLookup(postgres.dsn, table, key="id", columns=["name"])


def statements(server: psycopg.Connection, table: str) -> list[str]:
    found = server.execute(
        "SELECT query FROM pg_stat_activity WHERE application_name = 'headrace lookup' AND query LIKE %s",
        (f"%{table}%",),
    )
    return [query for (query,) in found.fetchall()]


def test_keys_are_asked_for_with_any(
    customers: PostgresLookup, server: psycopg.Connection, table: str
) -> None:
    async def some() -> list[str]:
        rows = await customers.get_many([3, 7, 99, None, 3])
        assert rows == [{"name": "c3"}, {"name": "c7"}, None, None, {"name": "c3"}]
        return statements(server, table)

    (query,) = asyncio.run(some())
    assert "= ANY($1::bigint[])" in query
    until = time.monotonic() + 10
    while statements(server, table) and time.monotonic() < until:
        time.sleep(0.02)
    assert statements(server, table) == [], "connections are closed with their loop"


def test_a_step_enriches_rows(customers: PostgresLookup, tmp_path: Any) -> None:
    async def enrich(row: Any) -> dict[str, Any]:
        found = await customers.get(row.customer)
        return {"order": row.order, "name": found["name"] if found else None}

    env = hr.Environment("enriched", checkpoint=tmp_path / "state")
    orders = [{"order": n, "customer": n % 60} for n in range(200)]
    schema = pa.schema([("order", pa.int64()), ("name", pa.string())])
    result = memory.MemorySink()
    rows = env.from_source(memory.MemorySource(orders), uid="orders")
    rows.map_async(enrich, schema=schema, uid="enriched").sink_to(result, uid="out")
    testing.run_local(env, epochs=hr.Epochs(rows=50), crashes=[(1, "staged")])
    names = {row["order"]: row["name"] for row in result.to_pylist()}
    assert (len(names), names[61], names[55], names[0]) == (200, "c1", None, None)


def test_rows_are_kept_until_they_run_out(
    postgres: Any, customers: PostgresLookup, server: psycopg.Connection, table: str
) -> None:
    fresh = PostgresLookup(postgres.dsn, table, key="id", columns=["name"], cache=None)
    assert customers.lookup_batch([1]) == fresh.lookup_batch([1]) == [{"name": "c1"}]
    server.execute(f"UPDATE {table} SET name = 'changed' WHERE id = 1")
    assert customers.lookup_batch([1]) == [{"name": "c1"}]
    assert fresh.lookup_batch([1]) == [{"name": "changed"}]
    copied = pickle.loads(pickle.dumps(customers))
    assert copied.lookup_batch([1]) == [{"name": "c1"}]


def test_a_lost_connection_is_replaced(
    postgres: Any, customers: PostgresLookup, server: psycopg.Connection, table: str
) -> None:
    async def across_a_loss() -> Any:
        await customers.get(1)
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'headrace lookup' AND query LIKE %s",
            (f"%{table}%",),
        )
        return await customers.get(2)

    assert asyncio.run(across_a_loss()) == {"name": "c2"}
    away = PostgresLookup(
        "postgresql://ada:s3cret@127.0.0.1:1/none",
        table,
        key="id",
        options={"connect_timeout": "2"},
    )
    with pytest.raises(EngineError, match="looking up in") as told:
        away.lookup_batch([1])
    assert "s3cret" not in f"{told.value} {away!r}"


def test_a_time_out_does_not_spoil_what_comes_behind_it(
    customers: PostgresLookup, server: psycopg.Connection, table: str
) -> None:
    async def impatient() -> Any:
        await customers.get(1)
        with server.transaction():
            server.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(customers.get(2), 0.3)
        return await customers.get(2)

    assert asyncio.run(impatient()) == {"name": "c2"}


def test_keys_of_several_columns_and_odd_names(
    postgres: Any, server: psycopg.Connection, table: str
) -> None:
    server.execute(
        f'CREATE TABLE {table} ("Land""%s" char(4), "no." numeric, "it\'s; --" jsonb,'
        ' PRIMARY KEY ("Land""%s", "no."))'
    )
    server.execute(f"""INSERT INTO {table} VALUES ('NO', 7, '{{"a": [1]}}'), ('SE', 7, null)""")
    lookup = PostgresLookup(postgres.dsn, table, key=('Land"%s', "no."), columns=["it's; --"])
    keys = [("NO", 7), ("SE", 7), ("NO", 8), ("DK", 7)]
    assert lookup.lookup_batch(keys) == [{"it's; --": {"a": [1]}}, {"it's; --": None}, None, None]
    with pytest.raises(InputError, match="does not have 2 parts"):
        lookup.lookup_batch(["NO"])


@pytest.mark.parametrize(
    ("kind", "stored", "asked"),
    [
        ("uuid", "0e37df36-f698-11e6-8dd4-cb9ced3df976", "0E37DF36-F698-11E6-8DD4-CB9CED3DF976"),
        ("char(8)", "ab", "ab"),
        ("date", "2025-03-01", datetime(2025, 3, 1, tzinfo=UTC).date()),
        ("timestamptz", "2025-03-01T10:00Z", datetime(2025, 3, 1, 10, tzinfo=UTC)),
        ("bytea", "\\x0102", b"\x01\x02"),
        ("varchar(9)", "it's", "it's"),
        ("int", "5", 5),
        ("double precision", "1.5", 1.5),
    ],
)
def test_keys_of_many_types(
    postgres: Any, server: psycopg.Connection, table: str, kind: str, stored: str, asked: Any
) -> None:
    server.execute(f"CREATE TABLE {table} (k {kind} PRIMARY KEY, v int)")
    server.execute(f"INSERT INTO {table} VALUES (%s, 1)", (stored,))
    lookup = PostgresLookup(postgres.dsn, table, key="k", columns=["v"])
    assert lookup.lookup_batch([asked]) == [{"v": 1}]


def test_without_columns_a_row_has_all(
    postgres: Any, customers: PostgresLookup, table: str
) -> None:
    (row,) = PostgresLookup(postgres.dsn, table, key="id").lookup_batch([1])
    assert row == {"id": 1, "name": "c1", "since": datetime(2025, 1, 1, tzinfo=UTC)}
    with pytest.raises(TypeError):
        row["name"] = "changed for all"  # type: ignore[index]


def test_what_cannot_be_looked_up_is_told(
    postgres: Any, customers: PostgresLookup, server: psycopg.Connection, table: str
) -> None:
    server.execute(f"UPDATE {table} SET name = 'twice' WHERE id < 3")
    with pytest.raises(InputError, match="several rows with the key 'twice'"):
        PostgresLookup(postgres.dsn, table, key="name").lookup_batch(["twice"])
    with pytest.raises(InputError, match="no column nme; it has id, name, since"):
        PostgresLookup(postgres.dsn, table, key="id", columns=["nme"]).lookup_batch([1])
    with pytest.raises(InputError, match="no table"):
        PostgresLookup(postgres.dsn, f"{table}_", key="id").lookup_batch([1])
    with pytest.raises(InputError, match="own type"):
        PostgresLookup(postgres.dsn, table, key="id").lookup_batch(["1"])
    kept = PostgresLookup(postgres.dsn, table, key="id")
    assert kept.lookup_batch([3])[0] is not None
    for beyond in (2**70, "a\0"):  # also on a connection that is kept
        with pytest.raises(InputError, match=f"looking up in {table}"):
            kept.lookup_batch([beyond])
    for wrong in ({"key": ()}, {"key": "id", "columns": "name"}, {"key": "id", "connections": 0}):
        with pytest.raises(BuildError):
            PostgresLookup(postgres.dsn, table, **wrong)
