"""Approximate aggregates know the type of their result and refuse settings that no sketch takes."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headrace import approximate as approx
from headrace.aggregates import Aggregate
from headrace.errors import BuildError, SchemaError

SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("word", pa.dictionary(pa.int32(), pa.string())),
    ]
)


def top_of(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([pa.field("item", kind), pa.field("count", pa.int64())]))


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (approx.approx_quantile("n", 0.5), pa.float64()),
        (approx.approx_quantiles("d", [0.5, 1]), pa.list_(pa.float64())),
        (approx.approx_count_distinct("s"), pa.int64()),
        (approx.approx_top("at"), top_of(pa.timestamp("us", tz="UTC"))),
        (approx.approx_top("word"), top_of(pa.string())),
    ],
    ids=str,
)
def test_a_result_has_a_type(aggregate: Aggregate, expected: pa.DataType) -> None:
    assert aggregate.result_type(SCHEMA) == expected


@pytest.mark.parametrize(
    ("aggregate", "sentence"),
    [
        (
            approx.approx_quantile("s", 0.5),
            "approx_quantile('s', rank=0.5, k=200) needs a field with numbers",
        ),
        (approx.approx_quantiles("at", [0.5]), "needs a field with numbers, but 'at' is timestamp"),
        (
            approx.approx_count_distinct("tags"),
            "needs a field with values that rows can be keyed by",
        ),
        (approx.approx_top("tags", 3), "approx_top('tags', n=3, lg_k=10) needs a field"),
        (approx.approx_top("tag"), "there is no field 'tag' (did you mean 'tags'?)"),
    ],
    ids=str,
)
def test_a_field_that_does_not_fit_is_named(aggregate: Aggregate, sentence: str) -> None:
    with pytest.raises(SchemaError) as raised:
        aggregate.result_type(SCHEMA)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: approx.approx_quantile("n", 1.5), "between 0 and 1"),
        (lambda: approx.approx_quantile("n", True), "between 0 and 1"),
        (lambda: approx.approx_quantiles("n", [float("nan")]), "between 0 and 1"),
        (lambda: approx.approx_quantiles("n", []), "at least one rank"),
        (lambda: approx.approx_quantiles("n", 0.5), "a list of ranks"),
        (lambda: approx.approx_quantiles("n", [0.5], k=7), "k must be a whole number from 8 to 65535"),
        (lambda: approx.approx_count_distinct("n", lg_k=22), "lg_k must be a whole number from 7 to 21"),
        (lambda: approx.approx_top("n", 0), "n must be a whole number from 1"),
        (lambda: approx.approx_top(5), "approx_top takes the name of a field"),
    ],
)  # fmt: skip
def test_a_setting_that_does_not_fit_is_refused(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(BuildError, match=sentence):
        make()


def test_aggregates_are_equal_by_value() -> None:
    one, other = (approx.approx_quantiles("n", ranks) for ranks in ([0.5, 1], [0.5]))
    assert one == approx.approx_quantiles("n", (0.5, 1.0)) != other
    assert str(one) == "approx_quantiles('n', ranks=[0.5, 1.0], k=200)"
