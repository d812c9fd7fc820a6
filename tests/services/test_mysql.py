"""MySQL's dialect on a MariaDB server: the same sink and source, as far as the same code serves."""

import secrets
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from headrace.connectors.databases import MySqlSink, MySqlSource
from headrace.connectors.databases.access import Access
from headrace.connectors.databases.mysql import MySqlDialect
from headrace.connectors.databases.pool import close_all
from headrace.endpoints import SinkContext
from headrace.errors import InputError, SinkError, SinkRefused

pytestmark = pytest.mark.services

TYPES = {
    "id": pa.int64(),
    "small": pa.int8(),
    "big": pa.uint64(),
    "f": pa.float64(),
    "price": pa.decimal128(20, 4),
    "t": pa.string(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "clock": pa.time64("us"),
    "at": pa.timestamp("us", tz="UTC"),
    "local": pa.timestamp("ns"),
    "length": pa.duration("us"),
    "raw": pa.binary(),
    "tags": pa.list_(pa.string()),
    "point": pa.struct({"x": pa.int64()}),
}
ROW: dict[str, Any] = {
    "id": 1,
    "small": -7,
    "big": 2**64 - 1,
    "f": 0.1,
    "price": Decimal("1.2345"),
    "t": "ü ✓ \\ ' \" % %s \0 😀",
    "flag": True,
    "day": date(2025, 1, 2),
    "clock": time(1, 2, 3, 4),
    "at": datetime(2025, 1, 1, 12, 0, 0, 5, tzinfo=UTC),
    "local": datetime(2025, 1, 1, 12, 0, 0, 6),
    "length": timedelta(days=3, microseconds=7),
    "raw": b"\0\xff'",
    "tags": ["a", None],
    "point": {"x": 1},
}


@pytest.fixture
def server(mariadb: Any, table: str) -> Iterator[Any]:
    connection = MySqlDialect().connect(Access(mariadb.dsn), "test")
    connection.autocommit(True)
    yield connection
    close_all()
    ask(connection, f"drop table if exists `{table}`")
    connection.close()


def ask(server: Any, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with server.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall())


class Run:
    """One job's sink: stages and publishes epochs."""

    def __init__(self, sink: MySqlSink, spool: Path, schema: Any, *, fence: int = 1) -> None:
        self.sink = sink
        incarnation = spool.name
        self.owner = SinkContext("job", incarnation, "results", pa.schema(schema), spool, fence)
        sink.validate(self.owner.schema)
        self.publisher = sink.publisher(self.owner)

    def stage(self, epoch: int, rows: list[dict[str, Any]]) -> Any:
        stager = self.sink.stager(self.owner, epoch, secrets.token_hex(4))
        stager.write(pa.RecordBatch.from_pylist(rows, self.owner.schema))
        return stager.close()

    def publish(self, epoch: int, rows: list[dict[str, Any]]) -> None:
        self.publisher.publish(epoch, self.stage(epoch, rows))


def publish_once(sink: MySqlSink, spool: Path, rows: list[dict[str, Any]]) -> None:
    run = Run(sink, spool, {"v": pa.int64()})
    try:
        run.publish(0, rows)
    finally:
        run.publisher.close()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / secrets.token_hex(8)


def test_every_type_arrives_and_is_read_back(
    mariadb: Any, table: str, server: Any, spool: Path, tmp_path: Path
) -> None:
    sink = MySqlSink(mariadb.dsn, table=table, mode="upsert", key="id", create=True)
    run = Run(sink, spool, TYPES)
    empty = dict.fromkeys(TYPES) | {"id": 2}
    run.publish(0, [ROW, empty])
    run.publisher.close()
    source = MySqlSource(mariadb.dsn, table=table, schema=pa.schema(TYPES).remove(14).remove(8))
    source.enumerator(tmp_path)
    (batch,) = source.read("rows", 0, 1, tmp_path)
    wanted = {name: value for name, value in ROW.items() if name not in ("clock", "point")}
    assert {**batch.batch.to_pylist()[0], "length": ROW["length"]} == wanted
    assert ask(server, f"select clock, json_value(point, '$.x') from `{table}` where id = 1") == [
        (timedelta(hours=1, minutes=2, seconds=3, microseconds=4), "1")
    ]
    assert set(batch.batch.to_pylist()[1].values()) == {2, None}
    natural = MySqlSource(mariadb.dsn, table=table).schema
    assert natural.field("big").type == pa.uint64()
    assert natural.field("price").type == pa.decimal128(20, 4)
    assert natural.field("raw").type == pa.binary()
    assert natural.field("t").type == pa.string()
    assert natural.field("at").type == pa.timestamp("us")


def test_upserts_and_deletes_by_key(mariadb: Any, table: str, server: Any, spool: Path) -> None:
    sink = MySqlSink(mariadb.dsn, table=table, mode="upsert", key=("a", "b"), create=True)
    run = Run(
        sink, spool, {"a": pa.int64(), "b": pa.string(), "v": pa.int64(), "change": pa.string()}
    )
    run.publish(0, [{"a": n, "b": "x", "v": 0, "change": "+I"} for n in range(2500)])
    changes = [{"a": n, "b": "x", "v": 1, "change": "+U"} for n in range(1000)]
    changes += [{"a": n, "b": "x", "v": 0, "change": "-D"} for n in range(1000, 2490)]
    changes += [{"a": 1, "b": "X", "v": 2, "change": "+I"}]
    run.publish(1, changes)
    run.publisher.close()
    counted = ask(server, f"select v, count(*) from `{table}` group by v order by v")
    assert counted == [(0, 10), (1, 1000), (2, 1)]


def test_an_epoch_that_was_cut_off_is_written_once(
    mariadb: Any, table: str, server: Any, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is killed before each statement and before the commit, or the commit's reply is lost."""
    sink = MySqlSink(mariadb.dsn, table=table, create=True)
    schema = {"v": pa.int64()}
    run = Run(sink, spool, schema)
    at, real = [-1], pymysql.connections.Connection

    def kill(connection: Any) -> None:
        at[0] -= 1
        if at[0] == -1:
            ask(server, f"kill {connection.thread_id()}")

    def query(self: Any, *arguments: Any) -> Any:
        kill(self)
        return asked(self, *arguments)

    def commit(self: Any) -> None:
        kill(self)
        committed(self)
        at[0] -= 1
        if at[0] == -1:
            raise pymysql.err.OperationalError(2013, "the reply was lost")

    asked, committed = real.query, real.commit
    monkeypatch.setattr(real, "query", query)
    monkeypatch.setattr(real, "commit", commit)
    failures, epoch = 0, 0
    for step in range(8):
        receipts = run.stage(epoch, [{"v": epoch}])
        at[0] = step
        try:
            run.publisher.publish(epoch, receipts)
            assert at[0] >= 0
        except SinkRefused:
            raise
        except SinkError:
            failures += 1
            at[0] = -1
            run.publisher.publish(epoch, receipts)
        epoch += 1
    assert failures == 5
    run.publisher.close()
    monkeypatch.undo()
    assert ask(server, f"select v from `{table}` order by v") == [(n,) for n in range(epoch)]
    marker = "select epoch, fence from headrace_markers where incarnation = %s"
    assert ask(server, marker, spool.name) == [(epoch - 1, 1)]


def test_an_earlier_start_is_refused(mariadb: Any, table: str, server: Any, spool: Path) -> None:
    sink, schema = MySqlSink(mariadb.dsn, table=table, create=True), {"v": pa.int64()}
    zombie = Run(sink, spool, schema)
    zombie.publish(0, [{"v": 0}])
    later = Run(sink, spool, schema, fence=2)
    assert later.publisher.published() == 0
    with pytest.raises(SinkRefused, match="another start"):
        zombie.publish(1, [{"v": 9}])
    later.publish(1, [{"v": 1}])
    assert ask(server, f"select v from `{table}` order by v") == [(0,), (1,)]
    zombie.publisher.close()
    later.publisher.close()


@pytest.mark.parametrize(
    ("columns", "options", "rows", "words"),
    [
        ("(v int) engine=MyISAM", {}, [], "alter table .* engine=InnoDB"),
        ("(a int)", {}, [], "no column 'v'"),
        ("(v int, w int not null)", {}, [], "wants a value for 'w'"),
        ("(v int)", {"mode": "upsert", "key": "v"}, [], "create unique index"),
        ("(v int unique)", {}, [{"v": 1}, {"v": 1}], 'mode="upsert"'),
        ("(v tinyint)", {}, [{"v": 1000}], "widen the column"),
        ("(v int not null)", {}, [{"v": None}], "let the column be NULL"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(
    columns: str,
    options: dict[str, Any],
    rows: list[dict[str, Any]],
    words: str,
    mariadb: Any,
    table: str,
    server: Any,
    spool: Path,
) -> None:
    ask(server, f"create table `{table}` {columns}")
    with pytest.raises(SinkRefused, match=words):
        publish_once(MySqlSink(mariadb.dsn, table=table, **options), spool, rows)
    assert ask(server, f"select count(*) from `{table}`") == [(0,)]


def test_names_cannot_end_a_statement(
    mariadb: Any, server: Any, spool: Path, tmp_path: Path
) -> None:
    name = "x`; drop table canary; -- %s ü \" '"
    quoted = "`" + name.replace("`", "``") + "`"
    ask(server, "create table if not exists canary (sings int)")
    ask(server, f"drop table if exists {quoted}")
    table = '"' + name.replace('"', '""') + '"'
    sink = MySqlSink(mariadb.dsn, table=table, mode="upsert", key=name, create=True)
    run = Run(sink, spool, {name: pa.int64(), "change": pa.string()})
    run.publish(0, [{name: 1, "change": "+I"}, {name: 2, "change": "+I"}])
    run.publish(1, [{name: 2, "change": "-D"}])
    run.publisher.close()
    source = MySqlSource(mariadb.dsn, table=table, partition_column=name)
    source.enumerator(tmp_path)
    assert [one.batch.to_pylist() for one in source.read("rows", 0, 1, tmp_path)] == [[{name: 1}]]
    assert ask(server, "show tables like 'canary'") == [("canary",)]
    ask(server, f"drop table canary, {quoted}")


def test_a_transaction_that_nobody_goes_on_with_is_ended_by_the_server(server: Any) -> None:
    """Or a process that was stopped in the middle of one would lock its marker for ever."""
    assert ask(server, "SELECT @@SESSION.idle_transaction_timeout") == [(120,)]


def test_ranges_hold_every_row_once(mariadb: Any, table: str, server: Any, tmp_path: Path) -> None:
    ask(server, f"create table `{table}` as select seq as n, '50%' as t from seq_1_to_70000")
    ask(server, f"alter table `{table}` modify n bigint null")
    ask(server, f"insert into `{table}` values (null, 'no')")
    query = f"select n from `{table}` where t like '50%' or t = 'no' -- the %"
    source = MySqlSource(mariadb.dsn, query=query, partition_column="n", partitions=3)
    end = source.enumerator(tmp_path).spans()["rows"].end
    parts = [
        [n for one in source.read("rows", at, at + 1, tmp_path) for n in one.batch["n"].to_pylist()]
        for at in range(end)
    ]
    assert sorted(n for part in parts[:3] for n in part) == list(range(1, 70_001))
    assert parts[3] == [None]
    with pytest.raises(InputError, match="doesn't exist"):
        _ = MySqlSource(mariadb.dsn, table="no_such_table_here").schema


def test_a_server_that_was_killed_is_asked_again(mariadb: Any, table: str, spool: Path) -> None:
    run = Run(MySqlSink(mariadb.dsn, table=table, create=True), spool, {"v": pa.int64()})
    run.publish(0, [{"v": 0}])
    receipts = run.stage(1, [{"v": 1}])
    mariadb.kill()
    for _ in range(2):
        with pytest.raises(SinkError) as caught:
            run.publisher.publish(1, receipts)
        assert not isinstance(caught.value, SinkRefused)
    mariadb.start()
    run.publisher.publish(1, receipts)
    run.publisher.close()
    connection = MySqlDialect().connect(Access(mariadb.dsn), "test")
    assert ask(connection, f"select v from `{table}` order by v") == [(0,), (1,)]
    connection.close()
