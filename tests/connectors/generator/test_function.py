"""Rows made by a user's function."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace.connectors.generator import Function
from headrace.errors import BuildError, InputError

SCHEMA = pa.schema({"n": pa.int64()})


def numbers(start: int, end: int) -> pa.RecordBatch:
    return pa.record_batch({"n": np.arange(start, end)})


def read_all(source: Function, directory: Path) -> dict[str, list[int]]:
    return {
        name: [
            n
            for read in source.read(name, 0, span.end, directory)
            for n in read.batch["n"].to_pylist()
        ]
        for name, span in source.enumerator(directory).spans().items()
    }


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("rows", [0, 1, 8_192, 70_001])
def test_partitions_hold_every_row_once_in_order(
    rows: int, partitions: int, tmp_path: Path
) -> None:
    parts = read_all(Function(SCHEMA, numbers, rows=rows, partitions=partitions), tmp_path)
    assert len(parts) == partitions
    assert all(part == sorted(part) for part in parts.values())
    assert sorted(n for part in parts.values() for n in part) == list(range(rows))


def test_any_cut_reads_the_same_rows(tmp_path: Path) -> None:
    source = Function(SCHEMA, numbers, rows=100_000, partitions=2)
    whole = read_all(source, tmp_path)["1"]
    cut = [
        n
        for a, b in ((0, 5), (5, 9_000), (9_000, 20_000))
        for read in source.read("1", a, b, tmp_path)
        for n in read.batch["n"].to_pylist()
    ]
    assert cut == whole[:20_000]


def test_columns_are_cast_to_the_declared_types(tmp_path: Path) -> None:
    source = Function(pa.schema({"n": pa.float64()}), numbers, rows=3)
    (read,) = source.read("0", 0, 3, tmp_path)
    assert read.batch.schema == source.schema


def too_few(start: int, end: int) -> pa.RecordBatch:
    return numbers(start, end - 1)


def other_names(start: int, end: int) -> pa.RecordBatch:
    return pa.record_batch({"m": np.arange(start, end)})


@pytest.mark.parametrize("function", [too_few, other_names, lambda *_: None])
def test_a_function_that_breaks_its_promise_is_an_error(function: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="function of a generator"):
        list(Function(SCHEMA, function, rows=5).read("0", 0, 5, tmp_path))


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("n", numbers), {"rows": 1}),
        ((SCHEMA, 3), {"rows": 1}),
        ((SCHEMA, numbers), {"rows": -1}),
        ((SCHEMA, numbers), {"rows": 1, "partitions": 0}),
    ],
)
def test_options_that_cannot_work_are_refused(arguments: Any, options: Any) -> None:
    with pytest.raises(BuildError):
        Function(*arguments, **options)
