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
    approx_...         from sketches of bounded size; see `headrace.approximate`

Deliberately absent: computing them; `_runtime.aggregates` does that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from headrace.errors import BuildError, SchemaError
from headrace.functions import AggregateFunction
from headrace.functions import result_type as function_result_type
from headrace.keys import check_key_type
from headrace.schema import describe_fields, require_field

__all__ = [
    "Aggregate",
    "as_aggregate",
    "avg",
    "check_retractable",
    "collect",
    "column_name",
    "count",
    "count_distinct",
    "first",
    "last",
    "max",
    "max_by",
    "min",
    "min_by",
    "reduce_of",
    "stddev",
    "sum",
    "variance",
]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: its kind, the column it reads, and what the kind needs besides.

    `kind` is the name of the function that makes it, `function` for an `AggregateFunction`, or `reduce`.
    """

    kind: str
    column: str | None = None
    by: str | None = None
    ddof: int = 1
    function: AggregateFunction | None = None
    reducer: Callable[[Any, Any], Any] | None = None
    #: What else was said, as (name, value) pairs.
    options: tuple[tuple[str, Any], ...] = ()

    def option(self, name: str) -> Any:
        """One of the options."""
        return dict(self.options)[name]

    def result_type(self, input_schema: pa.Schema) -> pa.DataType:
        """The type of the result over rows of this schema; `SchemaError` if it cannot be computed."""
        if self.function is not None:
            return function_result_type(self.function)
        if self.reducer is not None:
            return pa.struct(list(input_schema))
        if self.by is not None:
            _require(self, input_schema, self.by, *_ORDER)
        if self.column is None:
            return pa.int64()
        kind = _require_column(self, input_schema)
        return _RESULTS[self.kind](kind) if self.kind in _RESULTS else kind

    def __str__(self) -> str:
        if self.function is not None:
            return type(self.function).__name__
        if self.reducer is not None:
            return f"reduce({getattr(self.reducer, '__name__', repr(self.reducer))})"
        inside = [repr(name) for name in (self.column, self.by) if name is not None]
        if self.ddof != 1:
            inside.append(f"ddof={self.ddof}")
        inside += [f"{name}={_shown(value)}" for name, value in self.options]
        return f"{self.kind}({', '.join(inside)})"


def count(column: str | None = None) -> Aggregate:
    """How many rows there are; with a column, how many where it is not null."""
    return Aggregate("count", None if column is None else column_name(column, "count"))


def sum(column: str) -> Aggregate:
    """The sum of a column of numbers."""
    return Aggregate("sum", column_name(column, "sum"))


def min(column: str) -> Aggregate:
    """The least value of a column."""
    return Aggregate("min", column_name(column, "min"))


def max(column: str) -> Aggregate:
    """The greatest value of a column."""
    return Aggregate("max", column_name(column, "max"))


def avg(column: str) -> Aggregate:
    """The mean of a column of numbers."""
    return Aggregate("avg", column_name(column, "avg"))


def first(column: str) -> Aggregate:
    """The value with the earliest timestamp."""
    return Aggregate("first", column_name(column, "first"))


def last(column: str) -> Aggregate:
    """The value with the latest timestamp."""
    return Aggregate("last", column_name(column, "last"))


def min_by(column: str, by: str) -> Aggregate:
    """The value of `column` in the row where `by` is least."""
    return Aggregate("min_by", column_name(column, "min_by"), column_name(by, "min_by(by=...)"))


def max_by(column: str, by: str) -> Aggregate:
    """The value of `column` in the row where `by` is greatest."""
    return Aggregate("max_by", column_name(column, "max_by"), column_name(by, "max_by(by=...)"))


def count_distinct(column: str) -> Aggregate:
    """How many different values a column has, exactly. State grows with the number of values."""
    return Aggregate("count_distinct", column_name(column, "count_distinct"))


def variance(column: str, *, ddof: int = 1) -> Aggregate:
    """The variance of a column of numbers: of a sample (`ddof=1`) or of the population (`ddof=0`).

    Over no more than `ddof` values it is null.
    """
    return Aggregate("variance", column_name(column, "variance"), ddof=_ddof(ddof))


def stddev(column: str, *, ddof: int = 1) -> Aggregate:
    """The standard deviation: the square root of `variance`."""
    return Aggregate("stddev", column_name(column, "stddev"), ddof=_ddof(ddof))


def collect(column: str) -> Aggregate:
    """All values of a column as a list. State grows with the number of rows."""
    return Aggregate("collect", column_name(column, "collect"))


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


def column_name(column: object, what: str) -> str:
    """A name of a field, as `what` was given it; `BuildError` if it is none."""
    if not isinstance(column, str) or not column:
        raise BuildError(
            f"{what} takes the name of a field, not {column!r}; to aggregate an expression, name it first"
            " with select(name=expression)."
        )
    return column


def reduce_of(function: Callable[[Any, Any], Any]) -> Aggregate:
    """One row from all rows: `function` makes one of two, with the same columns. The result is a struct."""
    if not callable(function):
        raise BuildError(
            f"reduce takes a function of two rows that returns a row, not {function!r}."
        )
    return Aggregate("reduce", reducer=function)


def check_retractable(aggregate: Aggregate, name: str) -> None:
    """Whether rows that were added can be taken away again; `BuildError` if they cannot."""
    if aggregate.kind not in _RETRACTABLE:
        can = ", ".join(f"hr.{kind}" for kind in _RETRACTABLE)
        raise BuildError(
            f"{name} = {aggregate} cannot take back rows that an earlier step withdraws; {can} can. Use one of"
            " them, or make the earlier step accumulate without retracting."
        )


def _instance(kind: type[AggregateFunction]) -> AggregateFunction:
    try:
        return kind()
    except TypeError as error:
        raise BuildError(f"{kind.__name__} cannot be made without arguments: {error}.") from None


def _ddof(ddof: int) -> int:
    if type(ddof) is not int or ddof not in (0, 1):
        raise BuildError(f"ddof must be 1 (sample) or 0 (population), not {ddof!r}.")
    return ddof


def _is_number(kind: pa.DataType) -> bool:
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))


def _is_any(_: pa.DataType) -> bool:
    return True


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


def _require(
    aggregate: Aggregate,
    schema: pa.Schema,
    name: str | None,
    needs: str,
    fits: Callable[[pa.DataType], bool],
) -> pa.DataType:
    kind = require_field(schema, name or "", what=str(aggregate)).type
    if not fits(kind):
        raise SchemaError(
            f"{aggregate} needs a field with {needs}, but {name!r} is {kind}."
            f" The fields are {describe_fields(schema)}."
        )
    return kind


def _require_column(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    needs, fits = _NEEDS.get(aggregate.kind, ("values", _is_any))
    return _require(aggregate, schema, aggregate.column, needs, fits)


def _sum_type(kind: pa.DataType) -> pa.DataType:
    if pat.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    return pa.int64() if pat.is_integer(kind) else pa.float64()


def _top_type(kind: pa.DataType) -> pa.DataType:
    item = kind.value_type if pat.is_dictionary(kind) else kind
    return pa.list_(pa.struct([pa.field("item", item), pa.field("count", pa.int64())]))


def _shown(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else repr(value)


_NUMBERS = ("numbers", _is_number)
_ORDER = ("an order", _is_ordered)
_KEYS = ("values that rows can be keyed by", check_key_type)
_NEEDS = {
    "sum": _NUMBERS,
    "avg": _NUMBERS,
    "variance": _NUMBERS,
    "stddev": _NUMBERS,
    "min": _ORDER,
    "max": _ORDER,
    "count_distinct": ("single values", _is_ordered),
    "approx_quantile": _NUMBERS,
    "approx_quantiles": _NUMBERS,
    "approx_count_distinct": _KEYS,
    "approx_top": _KEYS,
}
#: The type of a result where it is not that of the column.
_RESULTS: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "count": lambda _: pa.int64(),
    "count_distinct": lambda _: pa.int64(),
    "approx_count_distinct": lambda _: pa.int64(),
    "avg": lambda _: pa.float64(),
    "variance": lambda _: pa.float64(),
    "stddev": lambda _: pa.float64(),
    "approx_quantile": lambda _: pa.float64(),
    "approx_quantiles": lambda _: pa.list_(pa.float64()),
    "sum": _sum_type,
    "collect": pa.list_,
    "approx_top": _top_type,
}
_RETRACTABLE = ("count", "sum", "avg")
