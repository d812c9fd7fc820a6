"""Rows that no table could take are refused before they are durable: afterwards no change of the job would help."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.connectors.databases import MySqlSink, PostgresSink
from headrace.endpoints import SinkContext
from headrace.errors import InputError

SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "t": pa.string(),
        "words": pa.list_(pa.string()),
        "point": pa.struct({"x": pa.map_(pa.string(), pa.string())}),
        "numbers": pa.list_(pa.int64()),
        "change": pa.string(),
    }
)
GOOD = {
    "k": 1,
    "t": "a",
    "words": ["a", None],
    "point": {"x": [("a", None)]},
    "numbers": [1],
    "change": "+I",
}
UPSERT = {"mode": "upsert", "key": "k"}


def staged(sink: Any, tmp_path: Path, *rows: dict[str, Any]) -> int:
    stager = sink.stager(SinkContext("job", "i", "out", SCHEMA, tmp_path), 0, "task")
    try:
        stager.write(pa.RecordBatch.from_pylist([GOOD], schema=SCHEMA))
        stager.write(pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA))
    except BaseException:
        stager.abort()
        raise
    return sum(receipt.rows for receipt in stager.close())


@pytest.mark.parametrize(
    ("options", "bad", "words"),
    [
        (UPSERT, {"k": None}, r"sink 'out': a row has no value for 'k'.*filter such rows"),
        ({"key": "k", "create": True}, {"k": None}, "no value for 'k'"),
        (UPSERT, {"change": "U"}, "the column 'change' holds 'U'"),
        (UPSERT, {"t": "a\0b"}, r"column 't': a text holds the character NUL.*take it out"),
        (UPSERT, {"words": ["a", "\0"]}, "column 'words': a text holds the character NUL"),
        (UPSERT, {"point": {"x": [("a", "\0")]}}, "column 'point': a text holds the character NUL"),
    ],
)
def test_a_row_that_no_table_takes_is_not_staged(
    options: dict[str, Any], bad: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        staged(PostgresSink("postgresql://db/x", table="t", **options), tmp_path, GOOD | bad)
    assert not list(tmp_path.rglob("*.arrow"))


def test_what_a_table_may_take_is_staged(tmp_path: Path) -> None:
    mysql = MySqlSink("mysql://db/x", table="t", **UPSERT)
    assert staged(mysql, tmp_path / "a", GOOD | {"t": "a\0b"}) == 2
    inserting = PostgresSink("postgresql://db/x", table="t", key="k")
    assert staged(inserting, tmp_path / "b", GOOD | {"k": None, "t": None}) == 2
