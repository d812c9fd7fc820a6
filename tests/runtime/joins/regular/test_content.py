"""Rows have the same number exactly if all their columns are the same, nested ones too."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.joins.regular.content import content_codes, content_hashes
from headrace._runtime.joins.sides import Side
from tests.examples import examples
from tests.oracle.joins.regular import frozen
from tests.runtime.joins.regular.cases import POSITION

NAN = float("nan")
#: A type, and values of it that differ.
TYPES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 0, 1, 2**62]),
    (pa.uint64(), [None, 0, 2**64 - 1]),
    (pa.bool_(), [None, True, False]),
    (pa.float64(), [None, 0.0, NAN, 1.5]),
    (pa.float32(), [None, 0.0, NAN, 1.5]),
    (pa.string(), [None, "", "a", "ä"]),
    (pa.large_binary(), [None, b"", b"\0", b"\0\0"]),
    (pa.decimal128(20, 2), [None, Decimal("0.00"), Decimal("-1.50")]),
    (pa.decimal256(60, 2), [None, Decimal("0.00"), Decimal("-1.50")]),
    (pa.timestamp("us", "UTC"), [None, datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]),
    (pa.list_(pa.float64()), [None, [], [None], [0.0], [NAN], [0.0, 1.0], [1.0, 0.0]]),
    (pa.large_list(pa.list_(pa.string())), [None, [], [[]], [None], [["a"], []], [["a", ""]], [["a"]]]),
    (POSITION, [None, {"x": None, "names": None}, {"x": NAN, "names": []}, {"x": NAN, "names": None}]),
    (pa.map_(pa.string(), pa.int64()), [None, [], [("a", None)], [("a", 0)], [("a", 0), ("b", 0)]]),
    (
        pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))])),
        [None, [None], [{"a": None, "b": None}], [{"a": 1, "b": [1]}], [{"a": 1, "b": [1, 1]}]],
    ),
]  # fmt: skip


def side_of(kind: pa.DataType) -> Side:
    keys, carried = pa.schema([("key", pa.int64())]), pa.schema([("value", kind)])
    return Side(0, ("key",), keys, carried, pa.schema([*keys, *carried]))


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=lambda x: str(x)[:30])
def test_values_of_every_type(kind: pa.DataType, values: list[Any]) -> None:
    def columns(numbers: list[int]) -> dict[str, pa.Array]:
        # A slice, so that nothing rests on where an array begins.
        column = pa.array([values[0], *(values[n] for n in numbers)], kind).slice(1)
        return {"key": pa.array([7] * len(numbers), pa.int64()), "value": column}

    @examples(20)
    @given(*[st.lists(st.integers(0, len(values) - 1), max_size=6) for _ in range(2)])
    def agree(first: list[int], second: list[int]) -> None:
        side = side_of(kind)
        parts = [columns(first), columns(second)]
        one, other = content_codes(side, parts)
        codes = [*one.tolist(), *other.tolist()]
        told = [frozen(values[n]) for n in (*first, *second)]
        alike = [[a == b for b in told] for a in told]
        assert [[a == b for b in codes] for a in codes] == alike
        hashes = [h for part in parts for h in content_hashes(side, part).tolist()]
        assert all(
            hashes[i] == hashes[j] for i, r in enumerate(alike) for j, b in enumerate(r) if b
        )

    agree()


def test_several_columns() -> None:
    side = Side(
        0, ("a", "b"), pa.schema([("a", pa.int64()), ("b", pa.string())]),
        pa.schema([("c", pa.int64())]), pa.schema([]),
    )  # fmt: skip
    rows = [(1, "x", None), (1, "x", 0), (1, "y", None), (2, "x", None), (1, "x", None)]
    columns = dict(zip("abc", map(pa.array, zip(*rows, strict=True)), strict=True))
    (codes,) = content_codes(side, [columns])
    assert codes.tolist() == [0, 1, 2, 3, 0]
