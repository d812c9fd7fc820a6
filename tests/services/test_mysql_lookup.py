"""Rows of a MariaDB table by key, and beside those of a stream."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace import testing
from headrace.connectors import memory
from headrace.connectors.databases import MySqlLookup
from headrace.connectors.databases.access import Access
from headrace.connectors.databases.mysql import MySqlDialect
from headrace.connectors.databases.pool import close_all
from headrace.errors import BuildError, InputError
from headrace.schema import as_schema

pytestmark = pytest.mark.services


@pytest.fixture
def server(mariadb: Any, table: str) -> Iterator[Any]:
    connection = MySqlDialect().connect(Access(mariadb.dsn), "test")
    with connection, connection.cursor() as cursor:
        yield cursor
        close_all()  # an open transaction would hold the table
        cursor.execute(f"DROP TABLE IF EXISTS `{table}`")


@pytest.fixture
def customers(mariadb: Any, server: Any, table: str) -> MySqlLookup:
    server.execute(f"CREATE TABLE `{table}` (id bigint PRIMARY KEY, name varchar(20), level int)")
    rows = [(n, f"c{n}", n % 3) for n in range(1, 51)]
    server.executemany(f"INSERT INTO `{table}` VALUES (%s, %s, %s)", rows)
    server.connection.commit()
    return MySqlLookup(mariadb.dsn, table, key="id")


def joined(rows: Any, table: Any, schema: Any = None, **options: Any) -> list[dict[str, Any]]:
    env, result = hr.Environment("joined"), memory.MemorySink()
    stream = env.from_source(memory.MemorySource(rows, schema), uid="orders")
    stream.join_lookup(table, uid="join", **options).sink_to(result, uid="result")
    testing.run_local(env, epochs=hr.Epochs(rows=50), crashes=[(1, "staged")])
    return result.to_pylist()


def test_rows_are_found_and_kept_by_key(customers: MySqlLookup, server: Any, table: str) -> None:
    assert customers.lookup_batch([3, 99, None, 3]) == [
        {"id": 3, "name": "c3", "level": 0},
        None,
        None,
        {"id": 3, "name": "c3", "level": 0},
    ]
    server.execute(f"UPDATE `{table}` SET name = 'changed' WHERE id = 3")
    server.connection.commit()
    assert customers.lookup_batch([3])[0]["name"] == "c3"  # type: ignore[index]


def test_a_join_has_the_columns_of_the_table(customers: MySqlLookup) -> None:
    orders = [{"order": n, "id": n % 60} for n in range(200)]
    found = joined(orders, customers, on="id")
    assert found[7] == {"order": 7, "id": 7, "name": "c7", "level": 1}
    assert found[55] == {"order": 55, "id": 55, "name": None, "level": None}
    inner = joined(orders, customers, on="id", how="inner")
    assert [row["order"] for row in inner] == [n for n in range(200) if 1 <= n % 60 <= 50]


def test_values_of_many_types_fit(mariadb: Any, server: Any, table: str) -> None:
    server.execute(
        f"CREATE TABLE `{table}` (k varchar(9) PRIMARY KEY, price decimal(9, 2), at timestamp, local datetime(6),"
        " day date, took time, raw varbinary(9), doc json, f float, `odd % name` int)"
    )
    server.execute(
        f"INSERT INTO `{table}` VALUES ('a', 1.5, '2025-03-01 10:00:00', '2025-03-01 10:00:00.25', '2025-03-01',"
        """ '01:00:00', x'0102', '{"a": [1]}', 0.5, 7)"""
    )
    server.connection.commit()
    lookup = MySqlLookup(mariadb.dsn, table, key="k")
    assert joined([{"k": "a"}], lookup, on="k") == [
        {
            "k": "a",
            "price": Decimal("1.50"),
            "at": datetime(2025, 3, 1, 10, tzinfo=UTC),
            "local": datetime(2025, 3, 1, 10, 0, 0, 250_000),
            "day": date(2025, 3, 1),
            "took": timedelta(hours=1),
            "raw": b"\x01\x02",
            "doc": '{"a": [1]}',
            "f": 0.5,
            "odd % name": 7,
        }
    ]
    schema = {"doc": pa.struct({"a": pa.list_(pa.int64())}), "price": float, "at": str}
    made, declared = lookup.typed(as_schema(schema))
    assert declared.names == ["doc", "price", "at"]
    assert made.lookup_batch(["a"]) == [
        {"doc": {"a": [1]}, "price": 1.5, "at": "2025-03-01 10:00:00"}
    ]


def test_keys_are_equal_as_python_has_it(mariadb: Any, server: Any, table: str) -> None:
    server.execute(
        f"CREATE TABLE `{table}` (k varchar(9) COLLATE utf8mb4_general_ci, at datetime, v int,"
        " PRIMARY KEY (k, at))"
    )
    server.execute(f"INSERT INTO `{table}` VALUES ('ABC', '2025-03-01 10:00:00', 1)")
    server.connection.commit()
    lookup = MySqlLookup(mariadb.dsn, table, key=("k", "at"), columns=["v"])
    at = datetime(2025, 3, 1, 10, tzinfo=UTC)
    assert lookup.lookup_batch([("abc", at), ("ABC", at), ("ABC ", at)]) == [None, {"v": 1}, None]
    with pytest.raises(InputError, match="does not have 2 parts"):
        lookup.lookup_batch(["ABC"])


def test_numbers_that_the_server_does_not_have_are_not_asked_for(
    customers: MySqlLookup, mariadb: Any, table: str
) -> None:
    found = joined([{"id": float("nan")}, {"id": 7.0}, {"id": float("inf")}], customers, on="id")
    assert [row["name"] for row in found] == [None, "c7", None]


def test_what_cannot_be_looked_up_is_told(
    customers: MySqlLookup, mariadb: Any, server: Any, table: str
) -> None:
    with pytest.raises(InputError, match="own type"):
        customers.lookup_batch(["7"])
    with pytest.raises(InputError, match="no column nme; it has id, name, level"):
        joined([{"id": 1}], MySqlLookup(mariadb.dsn, table, key="id", columns=["nme"]), on="id")
    server.execute(f"UPDATE `{table}` SET name = 'twice' WHERE id < 3")
    server.connection.commit()
    with pytest.raises(InputError, match="several rows with the key 'twice'"):
        MySqlLookup(mariadb.dsn, table, key="name").lookup_batch(["twice"])
    with pytest.raises(InputError, match="nowhere"):
        MySqlLookup(mariadb.dsn, "nowhere", key="id").lookup_batch([1])
    with pytest.raises(BuildError):
        MySqlLookup(mariadb.dsn, table, key=())
