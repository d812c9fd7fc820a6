"""What a format writes it reads back, value by value, whatever the type."""

import io
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from headrace.errors import BuildError
from headrace.formats import format_named
from tests.examples import examples

SCHEMA = pa.schema(
    {
        "whole": pa.int64(),
        "small": pa.int8(),
        "fraction": pa.float64(),
        "yes": pa.bool_(),
        "text": pa.string(),
        "instant": pa.timestamp("us", tz="UTC"),
        "day": pa.date32(),
        "hour": pa.time64("us"),
        "span": pa.duration("us"),
        "money": pa.decimal128(20, 4),
        "raw": pa.binary(),
        "listed": pa.list_(pa.int64()),
        "moments": pa.list_(pa.timestamp("us", tz="UTC")),
        "nested": pa.struct({"a": pa.string(), "b": pa.date32()}),
        "mapped": pa.map_(pa.string(), pa.float64()),
    }
)
instants = st.datetimes(datetime(1900, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))
days = st.dates(date(1900, 1, 1), date(9999, 12, 31))
texts = st.text(st.characters(codec="utf-8"), max_size=8)
wholes = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
rows = st.fixed_dictionaries(
    {
        "whole": st.none() | wholes,
        "small": st.none() | st.integers(-128, 127),
        "fraction": st.none() | floats,
        "yes": st.none() | st.booleans(),
        "text": st.none() | texts,
        "instant": st.none() | instants,
        "day": st.none() | days,
        "hour": st.none() | st.times(),
        "span": st.none() | st.timedeltas(timedelta(-10_000), timedelta(10_000)),
        "money": st.none() | st.decimals(-(10**15), 10**15, places=4),
        "raw": st.none() | st.binary(max_size=6),
        "listed": st.none() | st.lists(st.none() | wholes, max_size=3),
        "moments": st.none() | st.lists(instants, max_size=2),
        "nested": st.none()
        | st.fixed_dictionaries({"a": st.none() | texts, "b": st.none() | days}),
        "mapped": st.none()
        | st.lists(st.tuples(texts, floats), max_size=2, unique_by=lambda p: p[0]),
    }
)
SIMPLE = [f.name for f in SCHEMA if f.name not in ("moments", "nested", "mapped")]


def written(table: pa.Table, name: str, path: Path) -> None:
    with path.open("wb") as file:
        writer = format_named(name).writer(file, table.schema)
        for batch in table.to_batches(max_chunksize=3):
            writer.write(batch)
        writer.close()


def read_back(schema: pa.Schema, name: str, path: Path) -> pa.Table:
    parts = list(format_named(name).read(path, schema))
    assert all(part.bad == () for part in parts)
    return pa.Table.from_batches([part.batch for part in parts], schema)


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("columns", [SCHEMA.names, SIMPLE], ids=["all", "simple"])
@examples(20, phases=[Phase.explicit, Phase.generate])
@given(values=st.lists(rows, min_size=1, max_size=8))
def test_every_value_comes_back(
    name: str, columns: list[str], values: list[dict[str, object]], tmp_path: Path
) -> None:
    table = pa.Table.from_pylist(values, SCHEMA).select(columns)
    written(table, name, tmp_path / "file")
    assert read_back(table.schema, name, tmp_path / "file").to_pylist() == table.to_pylist()


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet"])
def test_combined_files_hold_the_rows_of_all_in_order(name: str, tmp_path: Path) -> None:
    table = pa.table({'a,\n"b': ["x\ny", "", None, "z"], "n": [1, 2, 3, 4]})
    for place in range(2):
        written(table.slice(place * 2, 2), name, tmp_path / str(place))
    file = io.BytesIO()
    format_named(name).combine([tmp_path / "0", tmp_path / "1"], file)
    (tmp_path / "both").write_bytes(file.getvalue())
    assert read_back(table.schema, name, tmp_path / "both").to_pylist() == table.to_pylist()


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("field", list(SCHEMA), ids=SCHEMA.names)
def test_a_null_in_the_only_column_comes_back(field: pa.Field, name: str, tmp_path: Path) -> None:
    table = pa.table([pa.nulls(2, field.type)], pa.schema([field]))
    written(table, name, tmp_path / "file")
    assert read_back(table.schema, name, tmp_path / "file").to_pylist() == table.to_pylist()


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet"])
def test_a_slice_is_written_without_its_neighbours(name: str, tmp_path: Path) -> None:
    table = pa.table({"text": [f"row {n}" for n in range(10)], "n": range(10)}).slice(4, 3)
    written(table, name, tmp_path / "file")
    assert read_back(table.schema, name, tmp_path / "file")["n"].to_pylist() == [4, 5, 6]


def test_unknown_format_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(BuildError, match=r"'avro'.*parquet, jsonl, csv"):
        format_named("avro")


def test_known_values_have_known_texts(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(
        [
            {
                "instant": datetime(2025, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
                "day": date(2025, 1, 2),
                "hour": time(1, 2, 3),
                "span": timedelta(seconds=1),
                "money": Decimal("1.5000"),
                "raw": b"\x00\xff",
                "text": 'say "hi"\n',
                "mapped": [("k", 1.5)],
            }
        ],
        SCHEMA,
    ).select(["instant", "day", "hour", "span", "money", "raw", "text", "mapped", "whole"])
    written(table, "jsonl", tmp_path / "file")
    assert (tmp_path / "file").read_text() == (
        '{"instant":"2025-01-02T03:04:05.000678Z","day":"2025-01-02","hour":"01:02:03.000000",'
        '"span":1000000,"money":1.5000,"raw":"AP8=","text":"say \\"hi\\"\\n",'
        '"mapped":{"k": 1.5},"whole":null}\n'
    )
