"""Arrow columns become the Python values that users expect."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace._runtime.columns import row_objects, values

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int64(), [1, None, 2**62 + 1]),
        (pa.uint64(), [2**64 - 1, None]),
        (pa.int8(), [None, None]),
        (pa.float64(), [0.5, None, -0.0]),
        (pa.bool_(), [True, None, False]),
        (pa.string(), ["a", None, "ü"]),
        (pa.binary(), [b"\x00", None]),
        (pa.timestamp("us", "UTC"), [NOON, None, NOON + timedelta(microseconds=1)]),
        (pa.timestamp("s", "UTC"), [NOON, None]),
        (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC)]),
        (pa.timestamp("us", "UTC"), [datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]),
        (pa.date32(), [date(2025, 1, 1), None]),
        (pa.duration("us"), [timedelta(seconds=1), None]),
        (pa.decimal128(10, 2), [Decimal("1.25"), None]),
        (pa.list_(pa.int64()), [[1, 2], None, []]),
        (pa.list_(pa.timestamp("us", "UTC")), [[NOON], None]),
        (pa.map_(pa.string(), pa.int64()), [{"a": 1}, None, {}]),
    ],
)
def test_values_come_out_as_they_went_in(kind: pa.DataType, expected: list[Any]) -> None:
    plain = [list(v.items()) if isinstance(v, dict) else v for v in expected]
    assert values(pa.array(plain, kind)) == expected


def test_slices_show_their_own_rows() -> None:
    lists = pa.array([[1], [2, 3], None, [4]], pa.list_(pa.int64())).slice(1)
    maps = pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())).slice(1)
    assert values(lists) == [[2, 3], None, [4]]
    assert values(maps) == [{"b": 2}]
    assert values(pa.array([1, None, 3]).slice(1)) == [None, 3]


def test_structs_have_attributes_at_every_depth() -> None:
    inner = pa.struct([("city", pa.string())])
    column = pa.array(
        [{"home": {"city": "Ulm"}}, None, {"home": None}], pa.struct([("home", inner)])
    )
    first, none, homeless = values(column)
    assert first.home.city == "Ulm"
    assert none is None
    assert homeless.home is None


def test_rows_are_objects_with_the_columns_as_attributes() -> None:
    rows = row_objects(pa.RecordBatch.from_pydict({"auction": [1, 2], "price": [10, None]}))
    assert [(row.auction, row.price) for row in rows] == [(1, 10), (2, None)]


def test_batch_without_columns_still_has_rows() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]}).select([])
    assert len(row_objects(batch)) == 2
