"""`Database`: a database for tests of pipelines, with transactions and failures on request."""

import gc
import pickle
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isnan
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.endpoints import SinkContext
from headrace.errors import BuildError, SinkError
from headrace.testing import cut, run_local
from headrace.testing.database import Database

SALE = {"country": str, "price": float}
SALES = [
    {"country": "FR", "price": 10.0},
    {"country": "NO", "price": 3.5},
    cut(),
    {"country": "FR", "price": 2.5},
    cut(),
    {"country": "NO", "price": 1.0},
]
NAME = UUID("0e37df36-f698-11e6-8dd4-cb9ced3df976")
AT = datetime(2025, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
#: Arrow type, the value that goes in, and the one that comes back where that is another one.
VALUES: dict[str, tuple[Any, ...]] = {
    "i8": (pa.int8(), -128),
    "i64": (pa.int64(), -(2**63)),
    "u64": (pa.uint64(), 2**64 - 1, Decimal(2**64 - 1)),
    "f32": (pa.float32(), 0.5),
    "infinite": (pa.float64(), float("-inf")),
    "money": (pa.decimal128(20, 4), Decimal("12.5000")),
    "word": (pa.dictionary(pa.int32(), pa.string()), "ü\0'%s"),
    "flag": (pa.bool_(), False),
    "day": (pa.date32(), date(2025, 1, 2)),
    "clock": (pa.time64("us"), time(1, 2, 3, 4)),
    "instant": (pa.timestamp("us", tz="Europe/Oslo"), AT),
    "local": (pa.timestamp("ns"), datetime(1, 1, 1).replace(year=1900)),
    "length": (pa.duration("ms"), timedelta(days=-3, milliseconds=1)),
    "raw": (pa.binary(), b"\0\xff"),
    "words": (pa.list_(pa.string()), ["a", None]),
    "point": (pa.struct({"x": pa.int64(), "at": pa.timestamp("us")}), {"x": 1, "at": None}),
}


def published(database: Database, table: pa.Table, spool: Path, **options: Any) -> None:
    sink = pickle.loads(pickle.dumps(database.sink("t", **options)))
    owner = SinkContext("job", spool.name, "out", table.schema, spool)
    sink.validate(table.schema)
    publisher, stager = sink.publisher(owner), sink.stager(owner, 0, "task")
    for batch in table.to_batches():
        stager.write(batch)
    publisher.publish(0, stager.close())
    publisher.close()


def test_a_pipeline_writes_and_reads_tables() -> None:
    database, read = Database(), MemorySink()
    env = hr.Environment("sales")
    sums = env.from_source(MemorySource(SALES, SALE), uid="sales").key_by("country").process(
        Sums(), schema={"country": str, "revenue": float}, uid="sums"
    )  # fmt: skip
    table = database.sink("revenue", mode="upsert", key="country", create=True)
    sums.sink_to(table, uid="table")
    database.fail("commit", applied=True)
    result = run_local(env, crashes=[(2, "published")])
    assert result.restarts == 2
    assert database.rows("revenue") == [
        {"country": "FR", "revenue": 12.5},
        {"country": "NO", "revenue": 4.5},
    ]
    again = hr.Environment("reader")
    source = database.source(query="SELECT country FROM revenue WHERE revenue > 10")
    again.from_source(source, uid="in").sink_to(read, uid="out")
    run_local(again)
    assert read.to_pylist() == [{"country": "FR"}]


class Sums(hr.KeyedProcessFunction):
    """What a country has paid so far."""

    total: hr.state.Value[float]

    def process_element(self, sale: Any, ctx: Any) -> Any:
        self.total.update((self.total.value() or 0.0) + sale.price)
        yield {"country": ctx.key, "revenue": self.total.value()}


def test_values_of_all_types_come_back(tmp_path: Path) -> None:
    schema = pa.schema([(name, kind) for name, (kind, *_) in VALUES.items()])
    rows = [dict.fromkeys(VALUES), {name: value[1] for name, value in VALUES.items()}]
    database, table = Database(), pa.Table.from_pylist(rows, schema)
    published(database, table, tmp_path, create=True)
    assert database.rows("t") == [rows[0], {name: value[-1] for name, value in VALUES.items()}]
    source = database.source("t", schema=schema.remove(schema.get_field_index("word")))
    source.enumerator(tmp_path)
    (read,) = source.read("rows", 0, 1, tmp_path)
    assert read.batch.to_pylist() == [
        {name: value for name, value in row.items() if name != "word"} for row in rows
    ]
    natural = database.source("t").schema
    assert natural.field("money").type == pa.decimal128(20, 4)
    assert natural.field("instant").type == pa.timestamp("us", tz="UTC")
    assert natural.field("words").type == pa.string()


def test_a_uuid_comes_back_as_text_and_nan_as_itself(tmp_path: Path) -> None:
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([NAME.bytes], pa.binary(16)))
    database, columns = Database(), {"id": ids, "v": pa.array([float("nan")])}
    published(database, pa.table(columns), tmp_path, mode="upsert", key="id", create=True)
    (row,) = database.rows("t")
    assert row["id"] == str(NAME)
    assert isnan(row["v"])


def test_a_table_that_a_test_made_has_the_types_of_sqlite(tmp_path: Path) -> None:
    database = Database()
    database.execute("create table t (at varchar(40), n numeric, v real)")
    rows = [{"at": AT, "n": 1, "v": 2}]
    kinds = [("at", pa.timestamp("us", tz="UTC")), ("n", pa.int64()), ("v", pa.int64())]
    published(database, pa.Table.from_pylist(rows, pa.schema(kinds)), tmp_path)
    assert database.rows("t") == [{"at": "2025-01-01T12:00:00.000005+00:00", "n": 1, "v": 2.0}]
    assert database.execute("select count(*) from t where n = ?", (1,)) == [(1,)]


def test_columns_that_no_table_has_are_refused() -> None:
    sink = Database().sink("t", create=True)
    with pytest.raises(BuildError, match="column 'v': SQLite has no type for month_day_nano"):
        sink.validate(pa.schema({"v": pa.month_day_nano_interval()}))


def test_another_reader_sees_what_is_committed_and_waits_for_nothing() -> None:
    database = Database()
    database.execute("create table t (v int)")
    sink = database.sink("t")
    connection = sink._dialect.connect(sink._access, "test")
    with connection.cursor() as cursor:
        cursor.execute("insert into t values (%s)", (1,))
        assert database.rows("t") == []
        connection.commit()
        assert database.rows("t") == [{"v": 1}]
        cursor.execute("insert into t values (2)")
        connection.rollback()
        cursor.execute("insert into t values (3)")
        connection.close()
    assert database.rows("t") == [{"v": 1}]


def test_failures_happen_at_the_steps_that_they_were_asked_for(tmp_path: Path) -> None:
    database, rows = Database(), pa.table({"v": [1]})
    database.fail("commit", after=1, times=2)
    database.fail("write", after=3)
    database.fail("connect", after=5)
    assert database.unreached == 4
    met = []
    for attempt in range(7):
        try:
            published(database, rows, tmp_path / str(attempt), create=True)
            met.append("written")
        except SinkError as error:
            assert error.retryable  # noqa: PT017 - some attempts have none
            met.append(str(error).rpartition(": ")[2])
    commit = "the connection was lost before the commit took effect"
    write = "the connection was lost before rows were written"
    assert met == ["written", commit, commit, write, "written", "the database is away", "written"]
    assert len(database.rows("t")) == 3
    assert database.unreached == 0


def test_requests_that_mean_nothing_are_refused() -> None:
    database = Database()
    with pytest.raises(BuildError, match=r"no step 'lunch'.*'commit'"):
        database.fail("lunch")  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="applied=True is for a commit"):
        database.fail("write", applied=True)
    with pytest.raises(BuildError, match="times must be 1 or more, not 0"):
        database.fail("commit", times=0)
    with pytest.raises(BuildError, match="no table 't'"):
        database.rows("t")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("create view t as select 1 as v", "'t' is a view"),
        ("create table t (v int primary key) without rowid", "'t' is WITHOUT ROWID"),
    ],
)
def test_rows_in_no_known_order_are_not_shown(statement: str, words: str) -> None:
    database = Database()
    database.execute(statement)
    with pytest.raises(BuildError, match=rf"{words}: read it with execute"):
        database.rows("t")


def test_a_database_goes_with_its_object() -> None:
    database = Database()
    directory = Path(database.address.removeprefix("sqlite://")).parent
    assert directory.is_dir()
    del database
    gc.collect()
    assert not directory.exists()
