"""Computes column expressions on Arrow columns, and derives their types.

Constants stay scalars until the end, so `col("price") * 2` makes no column of twos. A combination of types
that no operation takes is a `SchemaError`; `result_type` finds it before a job starts by computing on a batch
of no rows. What depends on the values (overflow, a cast that does not fit) is Arrow's `ArrowInvalid` and is
for the operator to report. The rules of each operation are in `headrace.expressions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from headrace.errors import EngineError, SchemaError
from headrace.expressions import Call, Column, Constant, Expression
from headrace.schema import describe_fields, require_field

__all__ = ["OPERATIONS", "columns_in", "evaluate", "result_type"]

#: A column or, as long as all its parts are constant, a single value.
Datum: TypeAlias = "pa.Array | pa.Scalar"
#: Takes the operands, then the options of the call.
Operation: TypeAlias = Callable[..., Datum]


def evaluate(expression: Expression, batch: pa.RecordBatch) -> pa.Array:
    """The values of an expression, one for each row of the batch."""
    result = _compute(expression, batch)
    if isinstance(result, pa.Scalar):
        return pa.repeat(result, batch.num_rows)
    return result


def result_type(expression: Expression, schema: pa.Schema) -> pa.DataType:
    """The type of an expression over rows of this schema; `SchemaError` if it has none."""
    empty = pa.RecordBatch.from_arrays(
        [pa.array([], field.type) for field in schema], schema=schema
    )
    try:
        return evaluate(expression, empty).type
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"{expression!r} cannot be computed: {error}. The fields are {describe_fields(schema)}."
        ) from None


def columns_in(expression: Expression) -> frozenset[str]:
    """The names of the columns that an expression reads."""
    if isinstance(expression, Column):
        return frozenset([expression.name])
    if isinstance(expression, Call):
        return frozenset[str]().union(*map(columns_in, expression.arguments))
    if not isinstance(expression, Constant):
        raise EngineError(f"nobody knows which columns {expression!r} reads")
    return frozenset()


def _compute(expression: Expression, batch: pa.RecordBatch) -> Datum:
    if isinstance(expression, Column):
        require_field(batch.schema, expression.name, what=repr(expression))
        return batch.column(expression.name)
    if isinstance(expression, Constant):
        return _scalar(expression.value)
    if isinstance(expression, Call):
        operands = [_compute(argument, batch) for argument in expression.arguments]
        return _apply(expression, _in_one_zone(operands), batch.schema)
    raise TypeError(f"{expression!r} is no expression")


def _apply(call: Call, operands: list[Datum], schema: pa.Schema) -> Datum:
    try:
        return OPERATIONS[call.operation](*operands, *call.options)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, SchemaError):
        kinds = " and ".join(str(operand.type) for operand in operands)
        raise SchemaError(
            f"{call!r} cannot be computed on {kinds}. The fields are {describe_fields(schema)}."
        ) from None


def _scalar(value: Any) -> pa.Scalar:
    if isinstance(value, datetime):
        return pa.scalar(value.astimezone(UTC), pa.timestamp("us", tz="UTC"))
    return pa.scalar(value)


def _in_one_zone(operands: list[Datum]) -> list[Datum]:
    """Instants in the time zone of the first; Arrow refuses to compare across zones."""
    zones = [o.type.tz for o in operands if pat.is_timestamp(o.type) and o.type.tz is not None]
    if len(set(zones)) < 2:
        return operands
    return [
        o.cast(pa.timestamp(o.type.unit, tz=zones[0]))
        if pat.is_timestamp(o.type) and o.type.tz is not None
        else o
        for o in operands
    ]


def _add(left: Datum, right: Datum) -> Datum:
    if any(pat.is_string(o.type) or pat.is_large_string(o.type) for o in (left, right)):
        return pc.binary_join_element_wise(left, right, "")
    return pc.add_checked(left, right)


def _divide(left: Datum, right: Datum) -> Datum:
    return pc.divide(_as_float(left), _as_float(right))


def _as_float(operand: Datum) -> Datum:
    kind = operand.type
    if pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind) or pat.is_null(kind):
        return operand.cast(pa.float64(), safe=False)
    raise SchemaError(f"{kind} is no number")


def _floored(function: np.ufunc, left: Datum, right: Datum) -> Datum:
    """`//` and `%` through numpy, which rounds down as Python does; Arrow rounds towards zero."""
    # Arrow knows the type in which two numbers meet; ask it with nulls, which cannot overflow.
    kind = pc.add(pa.scalar(None, left.type), pa.scalar(None, right.type)).type
    if pat.is_null(kind):
        return pc.add(left, right)
    if not (pat.is_integer(kind) or pat.is_floating(kind)):
        raise SchemaError(f"{kind} cannot be divided with a remainder")
    left, right = left.cast(kind), right.cast(kind)
    if pat.is_integer(kind):
        right = pc.if_else(pc.equal(right, pa.scalar(0, kind)), pa.scalar(None, kind), right)
    return _through_numpy(function, left, right)


def _through_numpy(function: np.ufunc, left: Datum, right: Datum) -> Datum:
    is_valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    one = pa.scalar(1, left.type)
    try:
        with np.errstate(divide="ignore", invalid="ignore", under="ignore", over="raise"):
            values = function(*(_numpy(pc.coalesce(side, one)) for side in (left, right)))
    except FloatingPointError:
        raise pa.ArrowInvalid("overflow") from None
    if isinstance(is_valid, pa.Scalar):
        return pa.scalar(values if is_valid.as_py() else None, left.type)
    return pa.array(values, left.type, mask=pc.invert(is_valid).to_numpy(zero_copy_only=False))


def _numpy(operand: Datum) -> Any:
    if isinstance(operand, pa.Scalar):
        return operand.type.to_pandas_dtype()(operand.as_py())
    return operand.to_numpy(zero_copy_only=False)


def _logical(function: Operation, *operands: Datum) -> Datum:
    return function(*map(_boolean, operands))


def _boolean(operand: Datum) -> Datum:
    return operand.cast(pa.bool_()) if pat.is_null(operand.type) else operand


def _is_in(operand: Datum, *choices: Any) -> Datum:
    known = pa.array([_scalar(choice).as_py() for choice in choices if choice is not None])
    operand, known = _in_one_zone([operand, known])
    # Refuses what `==` refuses: Arrow would read the number out of a string, or cut 1.5 down to 1.
    pc.equal(pa.scalar(None, operand.type), pa.scalar(None, known.type))
    is_found = pc.is_in(operand, value_set=known.cast(operand.type))
    return pc.if_else(pc.is_valid(operand), is_found, pa.scalar(None, pa.bool_()))


def _cast(operand: Datum, target: pa.DataType) -> Datum:
    return operand.cast(target)


def _field(operand: Datum, name: str) -> Datum:
    # In a list, because Arrow takes a name that begins with a dot for a path.
    return pc.struct_field(operand, [name])


def _length(operand: Datum) -> Datum:
    return pc.utf8_length(operand).cast(pa.int64())


def _coalesce(*operands: Datum) -> Datum:
    typed = [operand for operand in operands if not pat.is_null(operand.type)]
    return pc.coalesce(*typed) if typed else operands[0]


def _case(*operands: Datum) -> Datum:
    """Pairs of condition and value, then the value where no condition is true."""
    pairs = list(zip(operands[:-1:2], operands[1::2], strict=True))

    def choose(rest: Datum, pair: tuple[Datum, Datum]) -> Datum:
        condition, value = pair
        return pc.if_else(pc.coalesce(_boolean(condition), pa.scalar(False)), value, rest)

    return reduce(choose, reversed(pairs), operands[-1])


#: How each operation of `headrace.expressions` is computed.
OPERATIONS: Mapping[str, Operation] = {
    "add": _add,
    "subtract": pc.subtract_checked,
    "multiply": pc.multiply_checked,
    "divide": _divide,
    "floor_divide": partial(_floored, np.floor_divide),
    "modulo": partial(_floored, np.remainder),
    "negate": pc.negate_checked,
    "abs": pc.abs_checked,
    "equal": pc.equal,
    "not_equal": pc.not_equal,
    "less": pc.less,
    "less_equal": pc.less_equal,
    "greater": pc.greater,
    "greater_equal": pc.greater_equal,
    "and": partial(_logical, pc.and_kleene),
    "or": partial(_logical, pc.or_kleene),
    "not": partial(_logical, pc.invert),
    "is_null": pc.is_null,
    "is_not_null": pc.is_valid,
    "is_in": _is_in,
    "cast": _cast,
    "field": _field,
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "length": _length,
    "starts_with": pc.starts_with,
    "ends_with": pc.ends_with,
    "contains": pc.match_substring,
    "coalesce": _coalesce,
    "case": _case,
}
