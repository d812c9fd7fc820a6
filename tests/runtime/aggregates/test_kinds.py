"""Every aggregate that a user can write has code, for each type that it takes."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace.aggregates import Aggregate
from headrace.errors import InputError
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.runtime.contract import assert_same
from tests.runtime.windows.cases import answer, window_node

VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [3, -7, 3]),
    (pa.uint64(), [1, 2**62, 5]),
    (pa.float32(), [0.5, -1.5, 0.5]),
    (pa.decimal128(12, 2), [Decimal("1.25"), Decimal("-7.00"), Decimal("1.25")]),
    (pa.string(), ["b", "", "b"]),
    (pa.large_string(), ["b", "ä", "b"]),
    (pa.binary(), [b"b", b"", b"b"]),
    (pa.bool_(), [True, False, True]),
    (pa.timestamp("ms", "UTC"), [datetime(2025, 1, d, tzinfo=UTC) for d in (2, 1, 2)]),
]
NUMERIC = ("sum", "avg", "variance", "stddev")
ORDERED = ("count", "min", "max", "first", "last", "count_distinct", "collect")


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


@pytest.mark.parametrize("window", [Window(4, 4), Window(4, 2)], ids=["tumbling", "hopping"])
@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_every_kind_of_aggregate_on_every_type(
    kind: pa.DataType, values: list[Any], window: Window
) -> None:
    schema = pa.schema([("key", pa.int32()), ("value", kind)])
    kinds = (*ORDERED, *(NUMERIC if _is_number(kind) else ()))
    aggregates: dict[str, Aggregate] = {name: getattr(agg, name)("value") for name in kinds}
    aggregates |= {"least": agg.min_by("key", "value"), "most": agg.max_by("value", "value")}
    node = window_node(window, 0, aggregates, schema=schema)
    rows = [(ts, {"key": 1, "value": v}) for ts, v in zip((3, 1, 2), values, strict=True)]
    epochs = [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, [*rows[:2], (0, {"key": 2, "value": None})]),
        StepEpoch(NO_WATERMARK, 0, rows[2:]),
        StepEpoch(0, END_OF_TIME),
    ]
    assert_same(StepHarness(node).run(epochs), answer(node, epochs))


@pytest.mark.parametrize("batch_rows", [1, 10], ids=["when merged", "when folded"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.int64(), 2**62), (pa.int64(), -(2**62) - 1), (pa.uint64(), 2**63 - 5)],
)
def test_an_integer_sum_that_does_not_fit_is_an_error(
    kind: pa.DataType, value: int, batch_rows: int
) -> None:
    schema = pa.schema([("key", pa.int32()), ("value", kind)])
    node = window_node(Window(4, 4), 0, {"total": agg.sum("value")}, schema=schema)
    rows = [(1, {"key": 1, "value": value})] * 2
    # In epochs of one row nothing overflows before the shuffle.
    cuts = [rows[i : i + batch_rows] for i in range(0, 2, batch_rows)]
    with pytest.raises(InputError, match=r"'per-key'.*sum\('value'\).*int64"):
        StepHarness(node).run([StepEpoch(NO_WATERMARK, NO_WATERMARK, cut) for cut in cuts])


def test_large_integers_that_fit_are_added_exactly() -> None:
    schema = pa.schema([("key", pa.int32()), ("value", pa.int64())])
    node = window_node(Window(4, 4), 0, {"total": agg.sum("value")}, schema=schema)
    numbers = [2**63 - 1, -(2**63), 2**62 + 1, -3, None]
    rows = [(1, {"key": 1, "value": number}) for number in numbers]
    epochs = [StepEpoch(NO_WATERMARK, NO_WATERMARK, rows), StepEpoch(NO_WATERMARK, END_OF_TIME)]
    (result,) = StepHarness(node).run(epochs)["main"]
    assert result["total"] == 2**62 - 3


def test_a_decimal_sum_that_does_not_fit_is_an_error() -> None:
    schema = pa.schema([("key", pa.int32()), ("value", pa.decimal128(38, 0))])
    node = window_node(Window(4, 4), 0, {"total": agg.sum("value")}, schema=schema)
    rows = [(1, {"key": 1, "value": Decimal(6 * 10**37)})] * 2
    with pytest.raises(InputError, match="decimal"):
        StepHarness(node).run([StepEpoch(NO_WATERMARK, NO_WATERMARK, rows)])
