"""The table that a sink writes to: made if asked, refused in a sentence where it does not fit, its names never a statement."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.endpoints import SinkContext
from headrace.errors import SinkRefused
from headrace.testing.database import Database

UPSERT = {"mode": "upsert", "key": "v"}


def publish(
    database: Database,
    spool: Path,
    *epochs: list[Any],
    schema: Any,
    table: str = "t",
    **options: Any,
) -> None:
    sink, columns = database.sink(table, **options), pa.schema(schema)
    owner = SinkContext("job", "i", "out", columns, spool)
    publisher = sink.publisher(owner)
    for epoch, rows in enumerate(epochs):
        stager = sink.stager(owner, epoch, "task")
        stager.write(pa.RecordBatch.from_pylist(rows, columns))
        publisher.publish(epoch, stager.close())


@pytest.mark.parametrize(
    ("columns", "options", "kind", "rows", "words"),
    [
        ("", {}, pa.int64(), [], r"no table 't' in the database.*create=True"),
        ("(a int)", {}, pa.int64(), [], r"no column 'v'; add it, .*the table has 'a'"),
        ("(v int, w int not null)", {}, pa.int64(), [], r"wants a value for 'w'"),
        ("(w int, v int as (w + 1))", {}, pa.int64(), [], r"the server makes the values of 'v'"),
        ("(v int)", UPSERT, pa.int64(), [], r'create unique index on "t" \("v"\)'),
        ("(v int, w int, unique (v, w))", UPSERT, pa.int64(), [], r"create unique index on"),
        ("(v int)", {}, pa.string(), [], r"column 'v' of the stream is string, the table's is INT"),
        ("(v int)", {}, pa.float64(), [0.5], r"column 'v' is double .* does not fit the table's"),
        ("(v int unique)", {}, pa.int64(), [1, 1], r'UNIQUE.*t\.v; .*use mode="upsert"'),
        ("(v int not null)", {}, pa.int64(), [None], r"NOT NULL constraint failed: t\.v"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(
    columns: str, options: Any, kind: pa.DataType, rows: list[Any], words: str, tmp_path: Path
) -> None:
    database = Database()
    if columns:
        database.execute(f"create table t {columns}")
    epoch = [{"v": value} for value in rows]
    with pytest.raises(SinkRefused, match=words):
        publish(database, tmp_path, epoch, schema={"v": kind}, **options)
    assert not columns or database.rows("t") == []


@pytest.mark.parametrize("columns", ["(v int, w int, unique (v))", "(v int primary key, w int)"])
def test_a_table_that_is_there_is_found_by_its_key(columns: str, tmp_path: Path) -> None:
    database = Database()
    database.execute(f"create table t {columns}")
    publish(database, tmp_path, [{"v": 1}, {"v": 2}], schema={"v": pa.int64()}, **UPSERT)
    assert database.rows("t") == [{"v": 1, "w": None}, {"v": 2, "w": None}]


def test_a_table_of_another_job_is_no_marker_table(tmp_path: Path) -> None:
    database = Database()
    database.execute("create table headrace_markers (epoch int)")
    with pytest.raises(SinkRefused, match=r"'headrace_markers' .* a marker table has the columns"):
        publish(database, tmp_path, schema={"v": pa.int64()}, create=True)
    publish(database, tmp_path, [{"v": 1}], schema={"v": pa.int64()}, create=True, marker_table="m")
    assert database.rows("t") == [{"v": 1}]


@pytest.mark.parametrize("name", ['x"; drop table canary; --', "Ü✓ %s %(a)s {} {0}", "a'b"])
def test_names_cannot_end_a_statement(name: str, tmp_path: Path) -> None:
    database = Database()
    database.execute("create table canary (sings int)")
    quoted = '"' + name.replace('"', '""') + '"'
    rows = [{name: n, f"{name} 2": name, "change": "+I"} for n in (1, 2)]
    publish(
        database,
        tmp_path,
        rows,
        [{name: 2, "change": "-D"}],
        schema={name: pa.int64(), f"{name} 2": pa.string(), "change": pa.string()},
        table=quoted,
        mode="upsert",
        key=name,
        create=True,
        marker_table=f'{quoted}."m %s"',
    )
    expected = {name: 1, f"{name} 2": name}
    assert database.rows(quoted) == [expected]
    source = database.source(quoted, partition_column=name, partitions=2)
    source.enumerator(tmp_path)
    read = [one.batch.to_pylist() for one in source.read("rows", 0, 2, tmp_path)]
    assert read == [[expected]]
    assert database.rows("canary") == []
