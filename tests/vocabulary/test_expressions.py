"""Expressions are trees that show themselves as the user wrote them and refuse what cannot work."""

from datetime import datetime
from typing import Any

import pytest

from headrace.errors import BuildError
from headrace.expressions import Call, Column, Constant, Expression, coalesce, col, lit, when


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (col("a") + 1, "(col('a') + 1)"),
        (1 - col("a"), "(1 - col('a'))"),
        (2 * col("a") / 3, "((2 * col('a')) / 3)"),
        (7 // col("a") % 2, "((7 // col('a')) % 2)"),
        (7 % col("a"), "(7 % col('a'))"),
        (1 / col("a"), "(1 / col('a'))"),
        (1 + -col("a"), "(1 + -col('a'))"),
        (abs(col("a")), "abs(col('a'))"),
        (col("a") == "x", "(col('a') == 'x')"),
        (5 > col("a"), "(col('a') < 5)"),  # noqa: SIM300 - the reflected operator
        ((col("a") != 1) & ~col("b") | col("c"), "(((col('a') != 1) & ~col('b')) | col('c'))"),
        (True & col("a"), "(True & col('a'))"),
        (False | col("a"), "(False | col('a'))"),
        (col("a").between(1, 2), "((col('a') >= 1) & (col('a') <= 2))"),
        (col("a").is_in([1, None]), "col('a').is_in([1, None])"),
        (col("a").cast(int), "col('a').cast('int64')"),
        (col("a").field("x").is_null(), "col('a').field('x').is_null()"),
        (col("a").lower().contains("x"), "col('a').lower().contains('x')"),
        (coalesce(col("a"), 0), "coalesce(col('a'), 0)"),
        (
            when(col("a")).then(1).when(col("b")).then(2).otherwise(None),
            "when(col('a')).then(1).when(col('b')).then(2).otherwise(None)",
        ),
    ],
)
def test_an_expression_shows_what_it_computes(expression: Expression, text: str) -> None:
    assert repr(expression) == text


def test_nodes_are_plain_values() -> None:
    expression = col("price") * 2
    assert isinstance(expression, Call)
    left, right = expression.arguments
    assert isinstance(left, Column)
    assert isinstance(right, Constant)
    assert (expression.operation, left.name, right.value) == ("multiply", "price", 2)
    with pytest.raises(AttributeError):
        expression.operation = "add"  # type: ignore[misc]


def test_an_expression_can_be_a_key_of_a_dictionary() -> None:
    expression = col("a")
    assert {expression: 1}[expression] == 1


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: bool(col("a")),
        lambda: col("a") > 1 and col("b") > 1,
        lambda: not col("a"),
        lambda: 1 < col("a") < 5,
    ],
)
def test_an_expression_has_no_truth_value(attempt: Any) -> None:
    with pytest.raises(BuildError, match=r"Write & for `and`, \| for `or`, ~ for `not`"):
        attempt()


@pytest.mark.parametrize("value", [[1], {"a": 1}, object(), int, 1j])
def test_a_value_that_is_no_constant_is_refused(value: Any) -> None:
    with pytest.raises(BuildError, match="cannot be a constant of an expression"):
        lit(value)


def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(BuildError, match="has no time zone; give it one"):
        col("at") > datetime(2025, 1, 1)  # noqa: B015


def test_an_integer_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BuildError, match="does not fit into 64 bits"):
        lit(2**63)


@pytest.mark.parametrize("values", ["abc", 5, col("a")])
def test_is_in_takes_a_list(values: Any) -> None:
    with pytest.raises(BuildError, match="is_in takes a list of constants"):
        col("b").is_in(values)


def test_a_chain_without_otherwise_is_no_expression() -> None:
    with pytest.raises(BuildError, match=r"must end with \.otherwise"):
        col("a") + when(col("b")).then(1)  # type: ignore[operator]


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: when(col("a")).when(col("b")),
        lambda: when(col("a")).otherwise(1),
        lambda: when(col("a")).then(1).then(2),
        coalesce,
        lambda: col(5),  # type: ignore[arg-type]
        lambda: col("a").contains(5),  # type: ignore[arg-type]
    ],
)
def test_calls_in_a_wrong_order_or_of_a_wrong_type_are_refused(attempt: Any) -> None:
    with pytest.raises(BuildError):
        attempt()
