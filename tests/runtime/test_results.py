"""Python values become Arrow columns of the declared type, or an error that says why not."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from headrace._runtime.results import build_batch, build_column
from headrace.errors import UserCodeError

INSTANT = pa.timestamp("us", "UTC")


def wrong(index: int, sentence: str) -> UserCodeError:
    return UserCodeError(f"{index}: {sentence}")


def test_naive_datetime_is_refused() -> None:
    good = datetime(2025, 1, 1, tzinfo=UTC)
    with pytest.raises(UserCodeError, match=r"1: the field 'at' .*naive datetime"):
        build_column([good, datetime(2025, 1, 1)], pa.field("at", INSTANT), wrong)


def test_number_is_not_an_instant() -> None:
    with pytest.raises(UserCodeError, match="a datetime is needed"):
        build_column([1735689600], pa.field("at", INSTANT), wrong)


def test_null_in_a_required_field_is_refused() -> None:
    with pytest.raises(UserCodeError, match="1: the field 'n' may not be null"):
        build_column([1, None], pa.field("n", pa.int64(), nullable=False), wrong)


def test_number_too_large_is_refused() -> None:
    with pytest.raises(UserCodeError, match="0: the field 'n' must be int64"):
        build_column([2**63], pa.field("n", pa.int64()), wrong)


@dataclass
class Home:
    city: str


@pytest.mark.parametrize("value", [Home("Ulm"), {"city": "Ulm"}])
def test_nested_records_become_structs(value: Any) -> None:
    field = pa.field("homes", pa.list_(pa.struct([("city", pa.string())])))
    assert build_column([[value], None], field, wrong).to_pylist() == [[{"city": "Ulm"}], None]


def test_nested_field_that_is_missing_is_named() -> None:
    field = pa.field("home", pa.struct([("city", pa.string())]))
    with pytest.raises(UserCodeError, match="the field 'city' is missing"):
        build_column([{"town": "Ulm"}], field, wrong)


def test_dict_for_a_map_column_is_a_value() -> None:
    schema = pa.schema([("value", pa.map_(pa.string(), pa.int64()))])
    assert build_batch([{"a": 1}], schema, wrong).to_pydict() == {"value": [[("a", 1)]]}
    assert build_batch([{"value": {"a": 1}}], schema, wrong).to_pydict() == {"value": [[("a", 1)]]}


def test_no_results_make_an_empty_batch() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert build_batch([], schema, wrong).num_rows == 0
