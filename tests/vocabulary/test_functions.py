"""A user's aggregate function says its types by its annotations."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import BuildError
from headrace.functions import (
    AggregateFunction,
    accumulator_annotation,
    accumulator_type,
    result_type,
)


@dataclass
class Mean:
    total: float = 0.0
    rows: int = 0


class Average(AggregateFunction):
    def create_accumulator(self) -> Mean:
        return Mean()

    def add(self, value: Any, accumulator: Mean) -> Mean:
        return Mean(accumulator.total + value.price, accumulator.rows + 1)

    def get_result(self, accumulator: Mean) -> float | None:
        return accumulator.total / accumulator.rows if accumulator.rows else None

    def merge(self, a: Mean, b: Mean) -> Mean:
        return Mean(a.total + b.total, a.rows + b.rows)


class Silent(Average):
    def create_accumulator(self):  # type: ignore[no-untyped-def]
        return 0


class Odd(Average):
    def get_result(self, accumulator: Mean) -> complex:  # type: ignore[override]
        return 1j


class Lost(Average):
    def get_result(self, accumulator: Mean) -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
        return None


def test_types_come_from_annotations() -> None:
    assert accumulator_type(Average()) == pa.struct([("total", pa.float64()), ("rows", pa.int64())])
    assert result_type(Average()) == pa.float64()
    assert accumulator_annotation(Average()) is Mean


def test_a_missing_annotation_is_asked_for_by_name() -> None:
    with pytest.raises(BuildError, match=r"Silent\.create_accumulator needs a return annotation"):
        accumulator_type(Silent())


def test_a_type_that_no_column_has_is_refused_by_name() -> None:
    with pytest.raises(BuildError, match=r"Odd\.get_result: complex is not a type"):
        result_type(Odd())


def test_an_annotation_that_cannot_be_resolved_is_refused() -> None:
    with pytest.raises(BuildError, match=r"Lost\.get_result cannot be resolved: name 'Nowhere'"):
        result_type(Lost())


def test_all_four_methods_are_needed() -> None:
    class Partial(AggregateFunction):
        def create_accumulator(self) -> int:
            return 0

    with pytest.raises(TypeError, match="abstract"):
        Partial()  # type: ignore[abstract]
