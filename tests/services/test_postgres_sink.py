"""The PostgreSQL sink and the tables it meets: types, modes, names, and what it says when something does not fit."""

import math
import secrets
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.databases import PostgresSink, PostgresSource
from headrace.endpoints import SinkContext
from headrace.errors import BuildError, InputError, SinkError, SinkRefused
from tests.examples import examples

pytestmark = pytest.mark.services

POINT = pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())})
#: name -> Arrow type, the type of the new column, values
TYPES: dict[str, tuple[pa.DataType, str, st.SearchStrategy[Any]]] = {
    "i8": (pa.int8(), "smallint", st.integers(-(2**7), 2**7 - 1)),
    "u8": (pa.uint8(), "smallint", st.integers(0, 2**8 - 1)),
    "i16": (pa.int16(), "smallint", st.integers(-(2**15), 2**15 - 1)),
    "i32": (pa.int32(), "integer", st.integers(-(2**31), 2**31 - 1)),
    "i64": (pa.int64(), "bigint", st.integers(-(2**63), 2**63 - 1)),
    "u64": (pa.uint64(), "numeric(20,0)", st.integers(0, 2**64 - 1)),
    "f32": (pa.float32(), "real", st.floats(width=32, allow_nan=False)),
    "f64": (pa.float64(), "double precision", st.floats(allow_nan=False)),
    "money": (
        pa.decimal128(20, 4),
        "numeric(20,4)",
        st.decimals(-(10**15), 10**15, places=4, allow_nan=False),
    ),
    "text": (
        pa.string(),
        "text",
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    ),
    "flag": (pa.bool_(), "boolean", st.booleans()),
    "day": (pa.date32(), "date", st.dates()),
    "clock": (pa.time64("us"), "time without time zone", st.times()),
    "instant": (
        pa.timestamp("us", tz="UTC"),
        "timestamp with time zone",
        st.datetimes(timezones=st.just(UTC)),
    ),
    "local": (pa.timestamp("us"), "timestamp without time zone", st.datetimes()),
    "length": (
        pa.duration("us"),
        "interval",
        st.timedeltas(timedelta(days=-10000), timedelta(days=10000)),
    ),
    "raw": (pa.binary(), "bytea", st.binary()),
    "numbers": (
        pa.list_(pa.int64()),
        "bigint[]",
        st.lists(st.none() | st.integers(-9, 9), max_size=4),
    ),
    "words": (
        pa.list_(pa.string()),
        "text[]",
        st.lists(st.none() | st.text("a,\"'{}\\ ü", max_size=4), max_size=3),
    ),
    "prices": (
        pa.list_(pa.decimal128(9, 2)),
        "numeric(9,2)[]",
        st.lists(st.decimals(0, 999, places=2), max_size=3),
    ),
    "point": (
        POINT,
        "jsonb",
        st.fixed_dictionaries(
            {"x": st.integers(0, 2**53), "y": st.none() | st.lists(st.text('ab"\\ü\n'), max_size=2)}
        ),
    ),
}
SCHEMA = pa.schema([("id", pa.int64())] + [(name, kind) for name, (kind, _, _) in TYPES.items()])
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, _, values) in TYPES.items()}),
    min_size=1,
    max_size=8,
)


@pytest.fixture
def server(postgres: Any, table: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection
        connection.execute(f'drop table if exists "{table}"')


def publish(sink: PostgresSink, spool: Path, *epochs: list[dict[str, Any]], schema: Any) -> None:
    columns = pa.schema(schema)
    sink.validate(columns)
    owner = SinkContext(
        "job", secrets.token_hex(8), "results", columns, spool / secrets.token_hex(4)
    )
    publisher = sink.publisher(owner)
    try:
        for epoch, rows in enumerate(epochs):
            stager = sink.stager(owner, epoch, "task")
            stager.write(pa.RecordBatch.from_pylist(rows, columns))
            publisher.publish(epoch, stager.close())
            assert publisher.published() == epoch
            assert not list(owner.spool.rglob("*.arrow"))
    finally:
        publisher.close()


def found(server: psycopg.Connection, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    # As text the server would write a real with fewer digits.
    return server.execute(f'select {columns} from "{table}" order by 1', binary=True).fetchall()


@examples(15)
@given(rows=ROWS)
def test_every_type_arrives_and_is_read_back(
    rows: list[dict[str, Any]],
    postgres: Any,
    table: str,
    server: psycopg.Connection,
    tmp_path: Path,
) -> None:
    server.execute(f'drop table if exists "{table}"')
    given_rows = [{"id": number, **row} for number, row in enumerate(rows)]
    sink = PostgresSink(postgres.dsn, table=table, mode="upsert", key="id", create=True)
    publish(sink, tmp_path, given_rows, schema=SCHEMA)
    for row, values in zip(given_rows, found(server, table), strict=True):
        assert dict(zip(SCHEMA.names, values, strict=True)) == row
    source = PostgresSource(postgres.dsn, table=table, schema=SCHEMA)
    directory = tmp_path / secrets.token_hex(4)
    directory.mkdir()
    spans = source.enumerator(directory).spans()
    batches = list(source.read("rows", 0, spans["rows"].end, directory))
    read = pa.Table.from_batches([batch.batch for batch in batches]).sort_by("id")
    assert read.to_pylist() == given_rows
    # Integers and decimals change their width, nothing its meaning.
    assert set(PostgresSource(postgres.dsn, table=table).schema.names) == set(SCHEMA.names)


def test_a_new_table_has_the_types_of_the_schema(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    schema = SCHEMA.append(pa.field("uuid", pa.uuid())).append(
        pa.field("told", pa.string(), metadata={"type": "uuid"})
    )
    sink = PostgresSink(postgres.dsn, table=table, mode="upsert", key=("id", "text"), create=True)
    name = "0e37df36-f698-11e6-8dd4-cb9ced3df976"
    row = {"id": 1, "text": "a", "uuid": UUID(name).bytes, "told": name, "f64": math.inf}
    publish(sink, tmp_path, [row], schema=schema)
    types = server.execute(
        "select attname, format_type(atttypid, atttypmod) from pg_attribute"
        " where attrelid = %s::regclass and attnum > 0",
        (f'"{table}"',),
    ).fetchall()
    wanted = {name: sql for name, (_, sql, _) in TYPES.items()}
    assert dict(types) == {"id": "bigint", **wanted, "uuid": "uuid", "told": "uuid"}
    assert found(server, table, "uuid, told, f64") == [(UUID(name), UUID(name), math.inf)]
    with pytest.raises(psycopg.errors.UniqueViolation):
        server.execute(f"insert into \"{table}\" (id, text) values (1, 'a')")


def test_values_take_the_types_of_a_table_that_is_there(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute("drop domain if exists dbsink_short; drop type if exists dbsink_mood cascade")
    server.execute("create type dbsink_mood as enum ('sad', 'ok')")
    server.execute("create domain dbsink_short as varchar(3)")
    server.execute(
        f'create table "{table}" (small smallint, whole numeric, price numeric(8,2), word varchar(5), id uuid,'
        " mood dbsink_mood, tags jsonb, loose json, plain text, address inet, many int[], short dbsink_short,"
        " day date, at timestamp(0), made timestamptz default now(), real real, code char(4),"
        " serial bigint generated always as identity, moods dbsink_mood[])"
    )
    schema = {
        "small": pa.int64(),
        "whole": pa.float64(),
        "price": pa.float64(),
        "word": pa.dictionary(pa.int32(), pa.string()),
        "id": pa.string(),
        "mood": pa.string(),
        "tags": pa.map_(pa.string(), pa.float64()),
        "loose": pa.string(),
        "plain": POINT,
        "address": pa.string(),
        "many": pa.list_(pa.int64()),
        "short": pa.large_string(),
        "day": pa.date64(),
        "at": pa.timestamp("ns", tz="UTC"),
        "real": pa.int32(),
        "code": pa.string(),
        "moods": pa.list_(pa.string()),
    }
    name = "0e37df36-f698-11e6-8dd4-cb9ced3df976"
    row = {
        "small": 7,
        "whole": 1.5,
        "price": 2.125,
        "word": "abc",
        "id": name,
        "mood": "ok",
        "tags": [("a", 1.5), ("b", math.nan)],
        "loose": '{"k": [1]}',
        "plain": {"x": 1, "y": None},
        "address": "10.0.0.1",
        "many": [1, None],
        "short": "xyz",
        "day": date(2025, 1, 2),
        "at": datetime(2025, 1, 1, 12, 0, 0, 600_000, tzinfo=UTC),
        "real": 3,
        "code": "ab",
        "moods": ["sad", "ok"],
    }
    publish(PostgresSink(postgres.dsn, table=table), tmp_path, [row, {}], schema=schema)
    (values,) = server.execute(
        f"select small, whole, price, word, id::text, mood::text, tags, loose::text, plain, host(address), many,"
        f' short, day, at, real, code, moods::text[] from "{table}" where small is not null'
    ).fetchall()
    assert values == (
        *(
            7,
            Decimal("1.5"),
            Decimal("2.13"),
            "abc",
            name,
            "ok",
            {"a": 1.5, "b": "NaN"},
            '{"k": [1]}',
        ),
        *('{"x": 1, "y": null}', "10.0.0.1", [1, None], "xyz", date(2025, 1, 2)),
        *(datetime(2025, 1, 1, 12, 0, 1), 3.0, "ab  ", ["sad", "ok"]),
    )
    assert found(server, table, "count(*), count(made), count(serial)") == [(2, 2, 2)]
    server.execute(f'drop table "{table}"; drop type dbsink_mood; drop domain dbsink_short')


def test_inserted_rows_keep_their_order(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute(f'create table "{table}" (number bigserial, v bigint)')
    rows = [{"v": n * 7919 % 1000} for n in range(1000)]
    publish(PostgresSink(postgres.dsn, table=table), tmp_path, rows, rows, schema={"v": pa.int64()})
    written = [v for _, v in found(server, table)]
    assert written == [row["v"] for row in rows] * 2


def test_an_upsert_of_nothing_but_keys_adds_what_is_missing(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    sink = PostgresSink(postgres.dsn, table=table, mode="upsert", key=("k",), create=True)
    schema = {"k": pa.string(), "change": pa.string()}
    first = [{"k": "a", "change": "+I"}, {"k": "b", "change": "+I"}, {"k": "b", "change": "-D"}]
    second = [{"k": "a", "change": "+I"}, {"k": "c", "change": "+I"}, {"k": "x", "change": "-U"}]
    publish(sink, tmp_path, first, second, schema=schema)
    assert found(server, table) == [("a",), ("c",)]


def test_a_unique_value_may_move_from_a_row_that_goes_to_one_that_comes(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute(f'create table "{table}" (id bigint primary key, mail text unique)')
    sink = PostgresSink(postgres.dsn, table=table, mode="upsert", key="id")
    schema = {"id": pa.int64(), "mail": pa.string(), "change": pa.string()}
    first = [{"id": 1, "mail": "m", "change": "+I"}]
    second = [{"id": 2, "mail": "m", "change": "+I"}, {"id": 1, "mail": "m", "change": "-D"}]
    publish(sink, tmp_path, first, second, schema=schema)
    assert found(server, table) == [(2, "m")]


@pytest.mark.parametrize(
    ("kind", "arrow", "key"),
    [
        ("char(4)", pa.string(), "ab  "),
        ("char(4)", pa.string(), "ab"),
        ("numeric(10, 2)", pa.decimal128(10, 4), Decimal("1.0050")),
        ("timestamp(0)", pa.timestamp("us"), datetime(2025, 1, 1, 12, 0, 0, 600_000)),
        ("double precision", pa.float64(), 0.1),
        ("varchar(9)", pa.string(), "ab  "),
        ("citext", pa.string(), "AB"),
    ],
)
def test_a_row_is_deleted_by_the_key_that_it_was_written_with(
    kind: str,
    arrow: pa.DataType,
    key: Any,
    postgres: Any,
    table: str,
    server: psycopg.Connection,
    tmp_path: Path,
) -> None:
    if kind == "citext":
        offered = "select 1 from pg_available_extensions where name = 'citext'"
        if not server.execute(offered).fetchall():
            pytest.skip("this server has no citext")
        server.execute("create extension if not exists citext")
    server.execute(f'create table "{table}" (k {kind} primary key, v int)')
    sink = PostgresSink(postgres.dsn, table=table, mode="upsert", key="k")
    schema = {"k": arrow, "v": pa.int32(), "change": pa.string()}
    added, gone = {"k": key, "v": 1, "change": "+I"}, {"k": key, "v": 1, "change": "-D"}
    publish(sink, tmp_path, [added], [added], schema=schema)
    assert found(server, table, "v") == [(1,)]
    publish(sink, tmp_path, [gone], schema=schema)
    assert found(server, table) == []


def test_lists_of_uuids_arrive(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    name = UUID("0e37df36-f698-11e6-8dd4-cb9ced3df976")
    columns = pa.schema({"ids": pa.list_(pa.uuid())})
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([name.bytes], pa.binary(16)))
    batch = pa.record_batch([pa.ListArray.from_arrays([0, 1], ids)], schema=columns)
    sink = PostgresSink(postgres.dsn, table=table, create=True)
    owner = SinkContext("job", secrets.token_hex(8), "results", columns, tmp_path)
    publisher, stager = sink.publisher(owner), sink.stager(owner, 0, "task")
    stager.write(batch)
    publisher.publish(0, stager.close())
    publisher.publish(1, [])
    publisher.close()
    assert found(server, table) == [([name],)]


ODD = 'x"; drop table canary; --'
NAMES = [ODD, "Ü✓ %s %(a)s {} {0}", "a'b", "semi;colon", 'temp"."x', "headrace_written"]


@pytest.mark.parametrize("name", NAMES)
def test_names_cannot_end_a_statement(
    name: str, postgres: Any, server: psycopg.Connection, tmp_path: Path
) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    server.execute("create table if not exists canary (sings boolean)")
    server.execute(f"drop schema if exists {quoted} cascade; create schema {quoted}")
    try:
        sink = PostgresSink(
            postgres.dsn,
            table=f"{quoted}.{quoted}",
            mode="upsert",
            key=name,
            create=True,
            marker_table=f'{quoted}."m %s"',
        )
        schema = {name: pa.int64(), f"{name} 2": pa.string(), "change": pa.string()}
        rows = [{name: n, f"{name} 2": name, "change": "+I"} for n in (1, 2)]
        publish(sink, tmp_path, rows, [{name: 2, "change": "-D"}], schema=schema)
        assert server.execute(f"select * from {quoted}.{quoted}").fetchall() == [(1, name)]
        source = PostgresSource(
            postgres.dsn, table=f"{quoted}.{quoted}", partition_column=name, partitions=2
        )
        source.enumerator(tmp_path)
        read = [one.batch.to_pylist() for one in source.read("rows", 0, 2, tmp_path)]
        assert read == [[{name: 1, f"{name} 2": name}]]
        assert server.execute("select to_regclass('canary')::text").fetchone() == ("canary",)
    finally:
        server.execute(f"drop schema {quoted} cascade; drop table canary")


REFUSALS: list[tuple[str, dict[str, Any], dict[str, Any], list[dict[str, Any]], str]] = [
    ("", {}, {"v": pa.int64()}, [], r"no table .* create=True"),
    ("(a int)", {}, {"v": pa.int64()}, [], r"no column 'v'; add it, .*the table has 'a'"),
    ("(v int, w int not null)", {}, {"v": pa.int64()}, [], r"wants a value for 'w'"),
    (
        "(v int generated always as identity)",
        {},
        {"v": pa.int64()},
        [],
        r"the server makes the values of 'v'",
    ),
    ("(v int)", {"mode": "upsert", "key": "v"}, {"v": pa.int64()}, [], r"create unique index on"),
    (
        "(v int, unique (v) deferrable)",
        {"mode": "upsert", "key": "v"},
        {"v": pa.int64()},
        [],
        r"create unique index on",
    ),
    ("(v int)", {}, {"v": pa.struct({"a": pa.int64()})}, [], r"does not fit the table's integer"),
    ("(v text)", {}, {"v": pa.binary()}, [], r"holds bytes, the table's is text; make it bytea"),
    ("(v int unique)", {}, {"v": pa.int64()}, [{"v": 1}, {"v": 1}], r'v_key.*mode="upsert"'),
    ("(v int)", {}, {"v": pa.int64()}, [{"v": 2**40}], r"column 'v' is int64 .* does not fit"),
    ("(v varchar(2))", {}, {"v": pa.string()}, [{"v": "abc"}], r"too long.*widen the column"),
    ("(v uuid)", {}, {"v": pa.string()}, [{"v": "no"}], r"uuid.*\"no\".*change the column"),
    (
        "(v text)",
        {},
        {"v": pa.string()},
        [{"v": "a\0b"}],
        r"column 'v': a text holds the character NUL",
    ),
    ("(v int not null)", {}, {"v": pa.int64()}, [{"v": None}], r"'?\"?v.*drop NOT NULL"),
    ("(v int check (v > 0))", {}, {"v": pa.int64()}, [{"v": 0}], r"v_check.*change the constraint"),
    (
        "(v int primary key)",
        {"mode": "upsert", "key": "v"},
        {"v": pa.int64()},
        [{"v": None}],
        r"no value for 'v', which is part of the key",
    ),
    (
        "(v char(3) primary key, w int)",
        {"mode": "upsert", "key": "v"},
        {"v": pa.string(), "w": pa.int64()},
        [{"v": "a"}, {"v": "a "}],
        r"keys that the server holds equal",
    ),
    ("(v real)", {}, {"v": pa.float64()}, [{"v": 1e300}], r"'v' .* out of the range of float"),
    ("(v real[])", {}, {"v": pa.list_(pa.float64())}, [{"v": [-1e99]}], r"out of the range"),
    ("(v date)", {}, {"v": pa.timestamp("s")}, [], r"timestamp\[s\], .* the table's date"),
]


@pytest.mark.parametrize(("columns", "options", "schema", "rows", "words"), REFUSALS)
def test_what_does_not_fit_is_refused_in_a_sentence(
    columns: str,
    options: dict[str, Any],
    schema: dict[str, Any],
    rows: list[dict[str, Any]],
    words: str,
    postgres: Any,
    table: str,
    server: psycopg.Connection,
    tmp_path: Path,
) -> None:
    if columns:
        server.execute(f'create table "{table}" {columns}')
    sink = PostgresSink(postgres.dsn, table=table, **options)
    with pytest.raises((SinkRefused, InputError), match=words):
        publish(sink, tmp_path, rows or [{"v": None}], schema=schema)
    if columns:
        assert found(server, table, "count(*)") == [(0,)]


def test_a_user_without_rights_is_refused_with_the_grant_to_ask_for(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute("drop role if exists dbsink_reader")
    server.execute("create role dbsink_reader login password 'se/cr@et'")
    server.execute(f'create table "{table}" (v int)')
    try:
        options = {"user": "dbsink_reader", "password": "se/cr@et"}
        sink = PostgresSink(postgres.dsn, table=table, options=options)
        assert "se/cr@et" not in repr(sink)
        with pytest.raises(SinkRefused, match="grant SELECT, INSERT") as caught:
            publish(sink, tmp_path, [{"v": 1}], schema={"v": pa.int64()})
        assert "se/cr@et" not in str(caught.value)
    finally:
        server.execute("drop role dbsink_reader")


def test_a_table_that_is_locked_for_too_long_is_asked_again(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute(f'create table "{table}" (v int)')
    sink = PostgresSink(postgres.dsn, table=table, options={"options": "-c lock_timeout=100ms"})
    with psycopg.connect(postgres.dsn) as other:
        other.execute(f'lock table "{table}"')
        with pytest.raises(SinkError, match="lock timeout") as caught:
            publish(sink, tmp_path, [{"v": 1}], schema={"v": pa.int64()})
    assert not isinstance(caught.value, SinkRefused)


def test_two_jobs_may_make_the_marker_table_at_once(
    postgres: Any, table: str, tmp_path: Path
) -> None:
    import threading

    markers, errors = f"{table}_m", []

    def begin(number: int) -> None:
        sink = PostgresSink(postgres.dsn, table=table, create=True, key="v", marker_table=markers)
        try:
            publish(sink, tmp_path / str(number), [{"v": number}], schema={"v": pa.int64()})
        except SinkError as error:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with psycopg.connect(postgres.dsn, autocommit=True) as server:
        assert [v for (v,) in found(server, table)] == list(range(6))
        server.execute(f'drop table "{table}"; drop table "{markers}"')


def test_a_marker_table_of_somebody_else_is_left_alone(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    server.execute(f'create table "{table}" (v int)')
    sink = PostgresSink(postgres.dsn, table=table, marker_table=table)
    with pytest.raises(SinkRefused, match=r"somebody else's.*marker_table="):
        publish(sink, tmp_path, [{"v": 1}], schema={"v": pa.int64()})
    missing = PostgresSink(postgres.dsn, table=table, marker_table="no_such_schema.markers")
    with pytest.raises(SinkRefused, match="needs this table: CREATE TABLE"):
        publish(missing, tmp_path, [{"v": 1}], schema={"v": pa.int64()})


def test_streams_of_changes_need_a_key(postgres: Any) -> None:
    schema = pa.schema({"v": pa.int64(), "change": pa.string()})
    with pytest.raises(BuildError, match='mode="upsert"'):
        PostgresSink(postgres.dsn, table="t").validate(schema)
