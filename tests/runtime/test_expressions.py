"""Expressions computed on Arrow columns agree with Python, and their types are known beforehand."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import expressions as vocabulary
from headrace._runtime.expressions import OPERATIONS, evaluate, result_type
from headrace.errors import SchemaError
from headrace.expressions import Call, Column, Constant, Expression, coalesce, col, lit, when
from tests.examples import examples

AT = datetime(2025, 1, 1, tzinfo=UTC)
BATCH = pa.RecordBatch.from_pydict(
    {
        "n": [7, -7, None, 0],
        "m": [2, 2, 2, 0],
        "f": [0.5, -1.5, None, math.nan],
        "s": ["Abc", "xyz", None, ""],
        "b": [True, False, None, True],
        "d": pa.array([Decimal("1.25"), None, Decimal(2), Decimal(0)], pa.decimal128(10, 2)),
        "at": pa.array([AT, AT + timedelta(days=1), None, AT], pa.timestamp("us", tz="UTC")),
        "local": pa.array([AT, AT, AT, None], pa.timestamp("ns", tz="Europe/Berlin")),
        "p": [{"x": 1, ".y": "a"}, {"x": None}, None, {"x": 4}],
    }
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("n") * 2 + 1, [15, -13, None, 1]),
        (10 - col("n"), [3, 17, None, 10]),
        (col("n") // col("m"), [3, -4, None, None]),
        (col("n") % col("m"), [1, 1, None, None]),
        (col("n") % -3, [-2, -1, None, 0]),
        (7 // col("m"), [3, 3, 3, None]),
        (lit(7) // lit(2), [3] * 4),
        (lit(7) % 0, [None] * 4),
        (col("n") / 2, [3.5, -3.5, None, 0.0]),
        (col("d") / 2, [0.625, None, 1.0, 0.0]),
        (-col("n"), [-7, 7, None, 0]),
        (abs(col("n")), [7, 7, None, 0]),
        (col("n") + None, [None] * 4),
        (col("d") + 1, [Decimal("2.25"), None, Decimal("3.00"), Decimal("1.00")]),
        (col("s") + "!", ["Abc!", "xyz!", None, "!"]),
        (col("n") > 0, [True, False, None, False]),
        (col("n") != col("m"), [True, True, None, False]),
        (col("n").between(-7, 0), [False, True, None, True]),
        (col("b") & (col("n") == 7), [True, False, None, False]),
        (col("b") | None, [True, None, None, True]),
        (col("b") & None, [None, False, None, None]),
        (~col("b"), [False, True, None, False]),
        (col("n").is_null(), [False, False, True, False]),
        (col("f").is_not_null(), [True, True, False, True]),
        (col("n").is_in([7, None]), [True, False, None, False]),
        (col("s").is_in([]), [False, False, None, False]),
        (col("f").is_in([-1.5, 7]), [False, True, None, False]),
        (col("at").is_in([AT]), [True, False, None, True]),
        (col("local").is_in([AT]), [True, True, True, None]),
        (col("n").cast(str), ["7", "-7", None, "0"]),
        (col("s").lower(), ["abc", "xyz", None, ""]),
        (col("s").upper(), ["ABC", "XYZ", None, ""]),
        (col("s").length(), [3, 3, None, 0]),
        (col("s").starts_with("A"), [True, False, None, False]),
        (col("s").ends_with("z"), [False, True, None, False]),
        (col("s").contains("."), [False, False, None, False]),
        (coalesce(col("n"), None, -1), [7, -7, -1, 0]),
        (coalesce(None, None), [None] * 4),
        (when(col("b")).then("yes").otherwise("no"), ["yes", "no", "no", "yes"]),
        (
            when(col("n") > 0).then(1).when(col("n") < 0).then(-1).otherwise(None),
            [1, -1, None, None],
        ),
        (when(None).then(1).otherwise(2), [2] * 4),
        (col("at") + timedelta(hours=1) > AT, [True, True, None, True]),
        (col("at") - AT, [timedelta(0), timedelta(days=1), None, timedelta(0)]),
        (col("local") == AT, [True, True, True, None]),
        (col("local") <= col("at"), [True, True, None, None]),
        (col("p").field("x"), [1, None, None, 4]),
        (col("p").field(".y"), ["a", None, None, None]),
        (lit("x"), ["x"] * 4),
    ],
    ids=repr,
)
def test_values_are_as_python_says(expression: Expression, expected: list[Any]) -> None:
    result = evaluate(expression, BATCH)
    assert isinstance(result, pa.Array)
    assert result.to_pylist() == expected
    assert result.type == result_type(expression, BATCH.schema)


def test_division_by_zero_is_infinite() -> None:
    batch = pa.RecordBatch.from_pydict({"n": [1, -1, 0]})
    assert repr(evaluate(col("n") / 0, batch).to_pylist()) == "[inf, -inf, nan]"


def test_a_float_remainder_by_zero_is_nan() -> None:
    batch = pa.RecordBatch.from_pydict({"f": [1.0, None]})
    first, second = evaluate(col("f") % 0, batch).to_pylist()
    assert math.isnan(first)
    assert second is None


def test_nan_equals_nothing() -> None:
    assert evaluate(col("f") == col("f"), BATCH).to_pylist() == [True, True, None, False]


@pytest.mark.parametrize(
    "expression",
    [col("n") + 1, col("n") * 2, col("n") - -1, (-col("n") - 1) // -1],
    ids=repr,
)
def test_an_overflow_is_an_error_and_never_a_wrong_number(expression: Expression) -> None:
    batch = pa.RecordBatch.from_pydict({"n": [2**63 - 1]})
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        evaluate(expression, batch)


def test_a_cast_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid, match="Failed to parse string"):
        evaluate(col("s").cast(int), BATCH)


@pytest.mark.parametrize(
    "expression",
    [
        col("n") + "x",
        col("s") / 2,
        col("b") + col("b"),
        col("d") // 2,
        col("at") % 2,
        col("n") & col("b"),
        ~col("n"),
        col("n") == "7",
        col("n").lower(),
        col("n").is_in(["a"]),
        col("n").is_in(["7"]),
        col("n").is_in([1.5]),
        col("n").is_in([1, "a"]),
        col("n").field("x"),
        coalesce(col("n"), "x"),
        when(col("n")).then(1).otherwise(2),
        when(col("b")).then(1).otherwise("x"),
        col("p").field("y"),
        col("p").cast(int),
    ],
    ids=repr,
)
def test_types_that_do_not_go_together_are_named(expression: Expression) -> None:
    with pytest.raises(SchemaError, match=r"cannot be computed.*The fields are n \(int64\), m"):
        result_type(expression, BATCH.schema)


def test_the_innermost_operation_that_fails_is_named() -> None:
    with pytest.raises(
        SchemaError, match=r"^\(col\('n'\) \+ 'x'\) cannot be computed on int64 and"
    ):
        result_type(((col("n") + "x") > 5) & col("b"), BATCH.schema)


def test_a_missing_column_is_named_with_those_there_are() -> None:
    with pytest.raises(SchemaError) as raised:
        result_type(col("nn") + 1, BATCH.schema)
    assert str(raised.value).startswith(
        "col('nn'): there is no field 'nn' (did you mean 'n'?). The fields are n (int64), m (int64)"
    )


def test_a_batch_of_no_rows_has_no_values() -> None:
    assert evaluate(lit(5), BATCH.slice(0, 0)).to_pylist() == []


def test_every_operation_of_the_vocabulary_is_computed() -> None:
    made = {*vocabulary._INFIX, *vocabulary._PREFIX, "abs", "coalesce", "case"}
    made |= {"is_null", "is_not_null", "is_in", "cast", "field", "lower", "upper", "length"}
    made |= {"starts_with", "ends_with", "contains"}
    assert made == set(OPERATIONS)


NUMBERS = st.none() | st.integers(-20, 20)


def trees() -> st.SearchStrategy[Expression]:
    """Numbers from two columns and constants, joined by every arithmetic operation."""
    leaves = st.sampled_from([col("a"), col("b")]) | st.integers(-5, 5).map(lit)
    operations = st.sampled_from(["add", "subtract", "multiply", "floor_divide", "modulo"])
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(lambda o, x, y: Call(o, (x, y)), operations, inner, inner)
            | st.builds(lambda c, x, y: when(c > 0).then(x).otherwise(y), inner, inner, inner)
            | st.builds(coalesce, inner, inner)
        ),
        max_leaves=6,
    )


def reference(expression: Expression, row: dict[str, int | None]) -> Any:
    """One row at a time, in plain Python."""
    if isinstance(expression, Column):
        return row[expression.name]
    if isinstance(expression, Constant):
        return expression.value
    assert isinstance(expression, Call)
    values = [reference(argument, row) for argument in expression.arguments]
    if expression.operation == "case":
        return values[1] if values[0] else values[2]
    if expression.operation == "coalesce":
        return values[1] if values[0] is None else values[0]
    if None in values:
        return None
    if expression.operation in ("floor_divide", "modulo") and values[1] == 0:
        return None
    return PYTHON[expression.operation](*values)


PYTHON = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "floor_divide": lambda x, y: x // y,
    "modulo": lambda x, y: x % y,
    "greater": lambda x, y: x > y,
}


@examples(100)
@given(trees(), st.lists(st.fixed_dictionaries({"a": NUMBERS, "b": NUMBERS}), max_size=6))
def test_trees_agree_with_python_row_by_row(
    expression: Expression, rows: list[dict[str, int | None]]
) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    result = evaluate(expression, pa.RecordBatch.from_pylist(rows, schema))
    assert result.to_pylist() == [reference(expression, row) for row in rows]


FLOATS = st.floats(-1e6, 1e6, allow_subnormal=False)


@examples(100)
@given(st.lists(st.tuples(FLOATS, FLOATS.filter(bool)), min_size=1, max_size=6))
def test_float_remainders_agree_with_python(pairs: list[tuple[float, float]]) -> None:
    left, right = zip(*pairs, strict=True)
    batch = pa.RecordBatch.from_pydict({"a": list(left), "b": list(right)})
    assert evaluate(col("a") % col("b"), batch).to_pylist() == [x % y for x, y in pairs]
    assert evaluate(col("a") // col("b"), batch).to_pylist() == [x // y for x, y in pairs]
