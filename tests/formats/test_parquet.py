"""Reading Parquet files of others."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import BuildError, InputError
from headrace.formats import format_named

SCHEMA = pa.schema({"n": pa.int64(), "s": pa.string()})


def test_columns_are_picked_by_name_and_cast(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"s": ["a"], "z": [0.5], "n": pa.array([1], pa.int32())}), tmp_path / "f"
    )
    (decoded,) = format_named("parquet").read(tmp_path / "f", SCHEMA)
    assert decoded.batch.schema == SCHEMA
    assert decoded.batch.to_pylist() == [{"n": 1, "s": "a"}]
    assert decoded.lines.tolist() == [1]


def test_a_missing_column_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "f")
    with pytest.raises(InputError, match="f has no column s; it has n"):
        list(format_named("parquet").read(tmp_path / "f", SCHEMA))


@pytest.mark.parametrize("column", [["x"], [1.5]])
def test_a_value_that_does_not_fit_is_an_error_that_names_the_file(
    column: list[object], tmp_path: Path
) -> None:
    pq.write_table(pa.table({"n": column, "s": ["a"]}), tmp_path / "f")
    with pytest.raises(InputError, match="f is not the Parquet file it should be"):
        list(format_named("parquet").read(tmp_path / "f", SCHEMA))


def test_a_truncated_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1], "s": ["a"]}), tmp_path / "f")
    (tmp_path / "f").write_bytes((tmp_path / "f").read_bytes()[:-20])
    with pytest.raises(InputError, match="f is not the Parquet file"):
        list(format_named("parquet").read(tmp_path / "f", SCHEMA))


def test_types_that_parquet_lacks_are_refused_before_a_job_starts() -> None:
    with pytest.raises(BuildError, match="Parquet cannot hold"):
        format_named("parquet").check_writable(
            pa.schema({"u": pa.sparse_union([pa.field("a", pa.int8())])})
        )
