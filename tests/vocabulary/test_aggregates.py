"""Aggregates know the type of their result and refuse columns that they cannot read."""

from typing import Any

import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace.errors import BuildError, SchemaError
from headrace.expressions import col
from headrace.functions import AggregateFunction

SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("u", pa.uint8()),
        ("f", pa.float32()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("at", pa.timestamp("ms", tz="UTC")),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
    ]
)


class Longest(AggregateFunction):
    def create_accumulator(self) -> str:
        return ""

    def add(self, value: Any, accumulator: str) -> str:
        return max(accumulator, value.s, key=len)

    def get_result(self, accumulator: str) -> int:
        return len(accumulator)

    def merge(self, a: str, b: str) -> str:
        return max(a, b, key=len)


class Limited(Longest):
    def __init__(self, limit: int) -> None:
        self.limit = limit


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (agg.count(), pa.int64()),
        (agg.count("tags"), pa.int64()),
        (agg.sum("n"), pa.int64()),
        (agg.sum("u"), pa.int64()),
        (agg.sum("f"), pa.float64()),
        (agg.sum("d"), pa.decimal128(38, 2)),
        (agg.avg("n"), pa.float64()),
        (agg.avg("d"), pa.float64()),
        (agg.min("s"), pa.string()),
        (agg.max("at"), pa.timestamp("ms", tz="UTC")),
        (agg.max("flag"), pa.bool_()),
        (agg.first("tags"), pa.list_(pa.string())),
        (agg.last("n"), pa.int32()),
        (agg.min_by("tags", "at"), pa.list_(pa.string())),
        (agg.max_by("s", by="d"), pa.string()),
        (agg.count_distinct("s"), pa.int64()),
        (agg.variance("f"), pa.float64()),
        (agg.stddev("n", ddof=0), pa.float64()),
        (agg.collect("n"), pa.list_(pa.int32())),
        (agg.as_aggregate(Longest(), "longest"), pa.int64()),
    ],
)
def test_a_result_has_a_type(aggregate: agg.Aggregate, expected: pa.DataType) -> None:
    assert aggregate.result_type(SCHEMA) == expected


@pytest.mark.parametrize(
    ("aggregate", "sentence"),
    [
        (agg.sum("s"), "sum('s') needs a field with numbers, but 's' is string."),
        (agg.sum("flag"), "sum('flag') needs a field with numbers, but 'flag' is bool."),
        (agg.avg("at"), "needs a field with numbers"),
        (agg.stddev("s", ddof=0), "stddev('s', ddof=0) needs a field with numbers"),
        (agg.max("tags"), "needs a field with an order, but 'tags' is list<item: string>."),
        (agg.max_by("n", "tags"), "max_by('n', 'tags') needs a field with an order"),
        (agg.count_distinct("tags"), "needs a field with single values"),
        (agg.min("flagg"), "min('flagg'): there is no field 'flagg' (did you mean 'flag'?)."),
        (agg.min_by("n", "flagg"), "there is no field 'flagg'"),
        (agg.count("x"), "count('x'): there is no field 'x'."),
    ],
)
def test_a_field_that_does_not_fit_is_named(aggregate: agg.Aggregate, sentence: str) -> None:
    with pytest.raises(SchemaError) as raised:
        aggregate.result_type(SCHEMA)
    assert sentence in str(raised.value)
    assert "The fields are n (int32), u (uint8)" in str(raised.value)


@pytest.mark.parametrize("column", [col("n"), 5, "", None])
def test_only_names_are_aggregated(column: Any) -> None:
    with pytest.raises(
        BuildError, match=r"sum takes the name of a field.*select\(name=expression\)"
    ):
        agg.sum(column)


@pytest.mark.parametrize("ddof", [2, -1, True, 0.5])
def test_another_ddof_is_refused(ddof: Any) -> None:
    with pytest.raises(BuildError, match=r"ddof must be 1 \(sample\) or 0"):
        agg.variance("n", ddof=ddof)


def test_a_function_class_is_made_into_an_instance() -> None:
    aggregate = agg.as_aggregate(Longest, "longest")
    assert aggregate.kind == "function"
    assert isinstance(aggregate.function, Longest)
    assert str(aggregate) == "Longest"


def test_a_function_class_that_needs_arguments_is_refused() -> None:
    with pytest.raises(BuildError, match="Limited cannot be made without arguments"):
        agg.as_aggregate(Limited, "longest")


@pytest.mark.parametrize("value", ["price", sum, agg.count, 5])
def test_what_is_no_aggregate_is_refused_by_the_name_of_its_column(value: Any) -> None:
    with pytest.raises(BuildError, match=r"aggregate\(total=\.\.\.\) takes an aggregate such as"):
        agg.as_aggregate(value, "total")


def test_aggregates_are_equal_by_value() -> None:
    assert agg.sum("n") == agg.sum("n") != agg.sum("u")
