"""Secrets of databases: looked up where a connection is opened, and never shown."""

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.connectors.databases import MySqlSink, MySqlSource, PostgresSink, PostgresSource
from headrace.connectors.databases.access import access_to
from headrace.connectors.databases.mysql import MySqlDialect
from headrace.connectors.databases.postgres_driver import connection_settings
from headrace.endpoints import SinkContext
from headrace.errors import BuildError, SetupError, SinkError

SECRET = "s3cr3t"
SCHEMA = pa.schema({"v": pa.int64()})
DSNS = [
    f"postgresql://ada:{SECRET}@127.0.0.1:1/db",
    f"postgresql://ada:{SECRET}@p@127.0.0.1:1/db",
    f"postgresql://ada@127.0.0.1:1/db?password={SECRET}&sslmode=disable",
    f"host=127.0.0.1 port=1 user=ada password={SECRET} dbname=db",
    f"host=127.0.0.1 port=1 password='{SECRET}'",
    f"postgresql://ada:{SECRET}/x@127.0.0.1:1/db",
    f"postgresql://ada:p@{SECRET}@127.0.0.1:1/db",
    f"host=127.0.0.1 port=1 password='it\\'s {SECRET}'",
    f"host=127.0.0.1 port=1 password=a\\ {SECRET}",
    f"host=127.0.0.1 port=1 password='forgotten {SECRET}",
    f"host=127.0.0.1 port=1 sslpassword={SECRET}",
    f"host=127.0.0.1 port=1 passwd={SECRET}",
    # Slips of the pen, which the driver quotes.
    f"postgresql:/ada:{SECRET}@127.0.0.1:1/db",
    f"ada:{SECRET}@127.0.0.1:1/db",
]


@pytest.mark.parametrize("dsn", DSNS)
def test_a_password_is_in_no_text_that_people_read(dsn: str, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    sink, source = PostgresSink(dsn, table="t"), PostgresSource(dsn, table="t")
    context = SinkContext("job", "i", "u", SCHEMA, tmp_path)
    with pytest.raises(SinkError) as caught:
        sink.publisher(context)
    told = f"{sink!r} {source!r} {source.signature()} {sink._access!r} {caught.value}"
    assert SECRET not in told
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("dsn", [dsn.replace("postgresql:", "mysql:") for dsn in DSNS])
def test_a_password_is_in_no_text_that_people_read_of_mysql(dsn: str, tmp_path: Path) -> None:
    pytest.importorskip("pymysql")
    sink, source = MySqlSink(dsn, table="t"), MySqlSource(dsn, table="t", schema=SCHEMA)
    context = SinkContext("job", "i", "u", SCHEMA, tmp_path)
    with pytest.raises((SinkError, SetupError)) as caught:
        sink.publisher(context)
    told = f"{sink!r} {source!r} {source.signature()} {sink._access!r} {caught.value}"
    assert SECRET not in told
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "address",
    [
        f"ada:{SECRET}/x@127.0.0.1:1/db",
        f"ada:{SECRET}#x@127.0.0.1:1/db",
        f"ada:{SECRET}?x@127.0.0.1:1/db",
        "ada:1/x@127.0.0.1:1/db",
        f"ada:1?{SECRET}=x@127.0.0.1:1/db",
        f"ada:1#{SECRET}@127.0.0.1:1/db",
        f"ada:[{SECRET}@127.0.0.1:1/db",
        "ada@127.0.0.1:99999/db",
    ],
)
def test_an_address_of_mysql_that_cannot_be_taken_apart_says_what_to_write(address: str) -> None:
    with pytest.raises(SetupError, match="write %2F for a slash") as caught:
        MySqlDialect().connect(access_to(f"mysql://{address}", {}), "test")
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_refused_connection_is_asked_again_and_says_where(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    context = SinkContext("job", "i", "u", SCHEMA, tmp_path)
    with pytest.raises(SinkError, match=r"PostgreSQL at postgresql://127.0.0.1:1/db") as caught:
        PostgresSink("postgresql://127.0.0.1:1/db", table="t").publisher(context)
    assert caught.value.retryable


def test_references_stay_references_when_they_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_DSN", f"postgresql://ada:{SECRET}@db/shop")
    monkeypatch.setenv("DB_WORD", "other")
    access = access_to("env:DB_DSN", {"password": "env:DB_WORD", "sslmode": "require"})
    assert SECRET.encode() not in pickle.dumps(access)
    assert access.shown == "env:DB_DSN"
    assert access.shown_options == {"password": "env:DB_WORD", "sslmode": "require"}
    assert access.resolved()[0].endswith("@db/shop")
    assert access.scrubbed(f"{SECRET} and other failed") == "*** and *** failed"
    monkeypatch.delenv("DB_DSN")
    with pytest.raises(SetupError, match="DB_DSN is not set"):
        access.resolved()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "append"}, "'insert' or 'upsert'"),
        ({"mode": "upsert"}, "pass key="),
        ({"mode": "upsert", "key": ("a", "a")}, "twice"),
        ({"table": "a.b.c"}, "schema.table"),
        ({"marker_table": ""}, "marker_table=''"),
    ],
)
@pytest.mark.parametrize("kind", [PostgresSink, MySqlSink])
def test_options_that_cannot_work_are_refused(
    kind: type[PostgresSink], options: dict[str, str], words: str
) -> None:
    with pytest.raises(BuildError, match=words):
        kind("postgresql://db", **{"table": "t", **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "schema", "words"),
    [
        ({"mode": "upsert", "key": "k"}, {"v": pa.int64()}, "no field 'k'"),
        ({"mode": "upsert", "key": "v"}, {"v": pa.list_(pa.int64())}, "cannot be part of a key"),
        ({}, {"v": pa.int64(), "change": pa.string()}, 'use mode="upsert"'),
        ({}, {"v": pa.int64(), "change": pa.float64()}, "'change' is double.*another name"),
        ({}, {"v" * 70: pa.int64()}, "the server keeps"),
        ({"create": True}, {"v": pa.month_day_nano_interval()}, "no type for month_day_nano"),
    ],
)
@pytest.mark.parametrize("kind", [PostgresSink, MySqlSink])
def test_schemas_that_no_table_could_take_are_refused(
    kind: type[PostgresSink], options: dict[str, str], schema: dict[str, pa.DataType], words: str
) -> None:
    with pytest.raises(BuildError, match=words):
        kind("postgresql://db", table="t", **options).validate(pa.schema(schema))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either table= or query="),
        ({"table": "t", "query": "select 1"}, "either table= or query="),
        ({"table": "t", "partitions": 2}, "partition_column="),
        ({"table": "t", "partition_column": "v", "partitions": 0}, "1 or more"),
        ({"table": "t", "max_partitions_per_epoch": 0}, "1 or more"),
    ],
)
def test_sources_that_cannot_work_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(BuildError, match=words):
        PostgresSource("postgresql://db", **options)  # type: ignore[arg-type]


def test_a_server_that_went_away_amid_a_copy_is_noticed_in_a_minute() -> None:
    """Keepalives alone would wait for the kernel's fifteen minutes while rows are on their way."""
    pytest.importorskip("psycopg")
    settings = connection_settings(access_to("postgresql://db/x", {}), "test")
    assert settings["tcp_user_timeout"] == 60_000
    own = connection_settings(access_to("postgresql://db/x?tcp_user_timeout=5000", {}), "test")
    assert own["tcp_user_timeout"] == "5000"
