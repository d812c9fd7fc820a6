"""Aggregates as values: what to compute over the rows of a key and window, and the type of the result.

Nulls are skipped by all but `count()`. Over nothing but nulls, `count` and `count_distinct` give 0, `collect`
an empty list, everything else null.

    sum                of integers int64, of floats float64, of decimals a decimal; overflow is an error
    avg, variance      float64
    min, max           of floats: NaN is greater than every number, as in Flink and Spark
    first, last        by event time, among equals by arrival
    min_by, max_by     the value of a column in the row where another is least or greatest; among equals
                       the one that arrived first; rows where either is null are skipped
    collect            a list in order of arrival

Deliberately absent: computing them; `_runtime.aggregates` does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from headrace.errors import BuildError, SchemaError
from headrace.functions import AggregateFunction
from headrace.functions import result_type as function_result_type
from headrace.schema import describe_fields, require_field

__all__ = [
    "Aggregate",
    "as_aggregate",
    "avg",
    "collect",
    "count",
    "count_distinct",
    "first",
    "last",
    "max",
    "max_by",
    "min",
    "min_by",
    "stddev",
    "sum",
    "variance",
]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: its kind, the column it reads, and what the kind needs besides.

    `kind` is the name of the function that makes it, or `function` for an `AggregateFunction`.
    """

    kind: str
    column: str | None = None
    by: str | None = None
    ddof: int = 1
    function: AggregateFunction | None = None

    def result_type(self, input_schema: pa.Schema) -> pa.DataType:
        """The type of the result over rows of this schema; `SchemaError` if it cannot be computed."""
        if self.function is not None:
            return function_result_type(self.function)
        if self.by is not None:
            self._require(input_schema, self.by, "an order", _is_ordered)
        if self.column is None:
            return pa.int64()
        return _RESULTS[self.kind](self, input_schema)

    def __str__(self) -> str:
        if self.function is not None:
            return type(self.function).__name__
        inside = [repr(name) for name in (self.column, self.by) if name is not None]
        if self.ddof != 1:
            inside.append(f"ddof={self.ddof}")
        return f"{self.kind}({', '.join(inside)})"

    def _require(self, schema: pa.Schema, name: str | None, needs: str, fits: Any) -> pa.DataType:
        field = require_field(schema, name or "", what=str(self))
        if not fits(field.type):
            raise SchemaError(
                f"{self} needs a field with {needs}, but {name!r} is {field.type}."
                f" The fields are {describe_fields(schema)}."
            )
        return field.type


def count(column: str | None = None) -> Aggregate:
    """How many rows there are; with a column, how many where it is not null."""
    return Aggregate("count", None if column is None else _name(column, "count"))


def sum(column: str) -> Aggregate:
    """The sum of a column of numbers."""
    return Aggregate("sum", _name(column, "sum"))


def min(column: str) -> Aggregate:
    """The least value of a column."""
    return Aggregate("min", _name(column, "min"))


def max(column: str) -> Aggregate:
    """The greatest value of a column."""
    return Aggregate("max", _name(column, "max"))


def avg(column: str) -> Aggregate:
    """The mean of a column of numbers."""
    return Aggregate("avg", _name(column, "avg"))


def first(column: str) -> Aggregate:
    """The value with the earliest timestamp."""
    return Aggregate("first", _name(column, "first"))


def last(column: str) -> Aggregate:
    """The value with the latest timestamp."""
    return Aggregate("last", _name(column, "last"))


def min_by(column: str, by: str) -> Aggregate:
    """The value of `column` in the row where `by` is least."""
    return Aggregate("min_by", _name(column, "min_by"), _name(by, "min_by(by=...)"))


def max_by(column: str, by: str) -> Aggregate:
    """The value of `column` in the row where `by` is greatest."""
    return Aggregate("max_by", _name(column, "max_by"), _name(by, "max_by(by=...)"))


def count_distinct(column: str) -> Aggregate:
    """How many different values a column has, exactly. State grows with the number of values."""
    return Aggregate("count_distinct", _name(column, "count_distinct"))


def variance(column: str, *, ddof: int = 1) -> Aggregate:
    """The variance of a column of numbers: of a sample (`ddof=1`) or of the population (`ddof=0`).

    Over no more than `ddof` values it is null.
    """
    return Aggregate("variance", _name(column, "variance"), ddof=_ddof(ddof))


def stddev(column: str, *, ddof: int = 1) -> Aggregate:
    """The standard deviation: the square root of `variance`."""
    return Aggregate("stddev", _name(column, "stddev"), ddof=_ddof(ddof))


def collect(column: str) -> Aggregate:
    """All values of a column as a list. State grows with the number of rows."""
    return Aggregate("collect", _name(column, "collect"))


def as_aggregate(value: Any, name: str) -> Aggregate:
    """What a user passed for the result column `name`: an aggregate or an `AggregateFunction`."""
    if isinstance(value, Aggregate):
        return value
    if isinstance(value, type) and issubclass(value, AggregateFunction):
        value = _instance(value)
    if isinstance(value, AggregateFunction):
        return Aggregate("function", function=value)
    raise BuildError(
        f"aggregate({name}=...) takes an aggregate such as hr.count() or hr.sum('price'), or an"
        f" AggregateFunction, not {value!r}."
    )


def _instance(kind: type[AggregateFunction]) -> AggregateFunction:
    try:
        return kind()
    except TypeError as error:
        raise BuildError(f"{kind.__name__} cannot be made without arguments: {error}.") from None


def _name(column: str, what: str) -> str:
    if not isinstance(column, str) or not column:
        raise BuildError(
            f"{what} takes the name of a field, not {column!r}; to aggregate an expression, name it first"
            " with select(name=expression)."
        )
    return column


def _ddof(ddof: int) -> int:
    if isinstance(ddof, bool) or ddof not in (0, 1):
        raise BuildError(f"ddof must be 1 (sample) or 0 (population), not {ddof!r}.")
    return ddof


def _is_number(kind: pa.DataType) -> bool:
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))


def _is_ordered(kind: pa.DataType) -> bool:
    return bool(_is_number(kind) or pat.is_temporal(kind) or _is_plain(kind))


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        pat.is_boolean(kind)
        or pat.is_string(kind)
        or pat.is_large_string(kind)
        or pat.is_binary(kind)
        or pat.is_large_binary(kind)
    )


def _sum_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    kind = aggregate._require(schema, aggregate.column, "numbers", _is_number)
    if pat.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    return pa.int64() if pat.is_integer(kind) else pa.float64()


def _float_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    aggregate._require(schema, aggregate.column, "numbers", _is_number)
    return pa.float64()


def _ordered_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    return aggregate._require(schema, aggregate.column, "an order", _is_ordered)


def _same_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    return aggregate._require(schema, aggregate.column, "values", lambda kind: True)


def _count_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    _same_type(aggregate, schema)
    return pa.int64()


def _distinct_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    aggregate._require(schema, aggregate.column, "single values", _is_ordered)
    return pa.int64()


def _list_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    return pa.list_(_same_type(aggregate, schema))


_RESULTS = {
    "count": _count_type,
    "sum": _sum_type,
    "min": _ordered_type,
    "max": _ordered_type,
    "avg": _float_type,
    "first": _same_type,
    "last": _same_type,
    "min_by": _same_type,
    "max_by": _same_type,
    "count_distinct": _distinct_type,
    "variance": _float_type,
    "stddev": _float_type,
    "collect": _list_type,
}
