"""A user's function of two rows makes one row of all, in whatever form it returns it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime.aggregates.fold import Flush
from headrace._runtime.aggregates.kinds import Setting, make_fold
from headrace._runtime.expressions import evaluate
from headrace._runtime.rows import Origin
from headrace._runtime.windows.folding import fold_groups
from headrace.aggregates import reduce_of
from headrace.errors import BuildError, UserCodeError
from headrace.expressions import col
from tests.runtime.aggregates.driving import compute

SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("n", pa.int64()),
        ("words", pa.list_(pa.string())),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
AT = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass
class Whole:
    key: int
    n: int
    words: list[str]
    at: datetime


def as_row(a: Any, b: Any) -> Any:
    return type(a)(a.key, a.n + b.n, a.words + b.words, max(a.at, b.at))


def as_dict(a: Any, b: Any) -> Any:
    return {"words": a.words + b.words, "at": max(a.at, b.at), "key": a.key, "n": a.n + b.n}


def as_record(a: Any, b: Any) -> Any:
    return Whole(a.key, a.n + b.n, a.words + b.words, max(a.at, b.at))


def batch(*rows: tuple[int, int]) -> pa.RecordBatch:
    made = [{"key": key, "n": n, "words": [str(n)], "at": AT.replace(day=1 + n)} for key, n in rows]
    return pa.RecordBatch.from_pylist(made, schema=SCHEMA)


@pytest.mark.parametrize("function", [as_row, as_dict, as_record])
def test_rows_are_reduced_within_folds_between_folds_and_between_panes(
    function: Callable[[Any, Any], Any],
) -> None:
    panes = [[batch((0, 1), (1, 9), (0, 2)), batch((0, 3), (2, 0))], [batch((0, 4), (1, 5))]]
    found = compute(reduce_of(function), panes, keys=4)
    assert found.type == pa.struct(list(SCHEMA))
    assert found.to_pylist() == [
        {"key": 0, "n": 10, "words": ["1", "2", "3", "4"], "at": AT.replace(day=5)},
        {"key": 1, "n": 14, "words": ["9", "5"], "at": AT.replace(day=10)},
        {"key": 2, "n": 0, "words": ["0"], "at": AT},
        None,
    ]


def test_fields_of_the_result_become_columns() -> None:
    found = compute(reduce_of(as_dict), [[batch((0, 1), (0, 2))]], keys=2)
    rows = pa.RecordBatch.from_arrays([found], names=["row"])
    assert evaluate(col("row").field("n"), rows).to_pylist() == [3, None]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda *_: {"key": 1, "n": 1, "words": []}, r"the field 'at' \(timestamp.*is missing"),
        (lambda a, b: as_dict(a, b) | {"m": 1}, "it returned the field 'm'"),
        (
            lambda a, b: as_dict(a, b) | {"n": "many"},
            "the field 'n' must be int64, but it is 'many'",
        ),
        (lambda a, b: as_dict(a, b) | {"at": datetime(2025, 1, 1)}, "the field 'at'.*naive"),
        (lambda *_: None, r"it returned None \(NoneType\)"),
        (lambda a, _: a.n / 0, "ZeroDivisionError"),
        (lambda a, _: a.price, "price"),
    ],
)
@pytest.mark.parametrize("apart", [False, True], ids=["in a fold", "when merged"])
def test_a_wrong_row_names_the_step_and_the_field(
    function: Callable[[Any, Any], Any], sentence: str, apart: bool
) -> None:
    batches = [batch((0, 1)), batch((0, 2))] if apart else [batch((0, 1), (0, 2))]
    with pytest.raises(UserCodeError, match=f"(?s)'per-key'.*{sentence}"):
        compute(reduce_of(function), [batches], keys=1)


@pytest.mark.parametrize("function", [lambda a, _: a.n / 0, lambda *_: {}])
def test_an_error_in_a_fold_says_where_the_row_came_from(
    function: Callable[[Any, Any], Any],
) -> None:
    rows = batch((0, 1), (0, 2))
    keys = pa.schema([SCHEMA.field("key")])
    setting = Setting("per-key", SCHEMA, keys, overlapping=False, weighted=False)
    fold = make_fold("out", reduce_of(function), setting)
    columns = dict(zip(SCHEMA.names, rows.columns, strict=True))
    origin = Origin("bids", "3", np.array([70, 71]))
    flush = Flush(columns, np.arange(2), [(0, origin)])
    with pytest.raises(UserCodeError, match="source 'bids', partition '3', offset 71"):
        fold_groups(flush, [columns["key"]], [fold])


def test_a_row_alone_is_itself_and_needs_no_function() -> None:
    def never(a: Any, b: Any) -> Any:
        raise AssertionError

    found = compute(reduce_of(never), [[batch((0, 1))], [batch((1, 2))]], keys=2)
    assert [row["n"] for row in found.to_pylist()] == [1, 2]


def test_only_functions_reduce() -> None:
    with pytest.raises(BuildError, match="reduce takes a function of two rows"):
        reduce_of("n")  # type: ignore[arg-type]


def test_a_reduction_is_shown_by_the_name_of_its_function() -> None:
    assert str(reduce_of(as_row)) == "reduce(as_row)"
