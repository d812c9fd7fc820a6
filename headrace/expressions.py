"""Column expressions: a small frozen tree that says what to compute from the columns of a batch.

An expression is data. It knows no schema until `_runtime.expressions` computes it on Arrow columns or
derives its type. Null in, null out, except where a method says otherwise; `&`, `|` and `~` follow the
three-valued logic of SQL. Plain values beside an expression are constants, never column names.

    /        always a float64; x / 0 is inf, -inf or NaN
    // %     as in Python (the result of % has the sign of the divisor); by an integer zero: null
    + - *    an integer result that does not fit is an error, never a wrong number
    == <     on floats as IEEE says: NaN equals nothing
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.errors import BuildError
from headrace.schema import arrow_type

__all__ = ["Branches", "Call", "Column", "Constant", "Expression", "coalesce", "col", "lit", "when"]

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "modulo": "%",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "and": "&",
    "or": "|",
}
_PREFIX = {"negate": "-", "not": "~"}
_CONSTANTS = (bool, int, float, str, bytes, datetime, date, time, timedelta, Decimal)


class Expression:
    """Something that is computed from the columns of a batch, one value a row.

    Operators build larger expressions; nothing is computed here.

    >>> (col("price") * 2 > 100) & col("channel").is_not_null()
    (((col('price') * 2) > 100) & col('channel').is_not_null())
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Expression:
        return _call("add", self, other)

    def __radd__(self, other: Any) -> Expression:
        return _call("add", other, self)

    def __sub__(self, other: Any) -> Expression:
        return _call("subtract", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return _call("subtract", other, self)

    def __mul__(self, other: Any) -> Expression:
        return _call("multiply", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return _call("multiply", other, self)

    def __truediv__(self, other: Any) -> Expression:
        return _call("divide", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _call("divide", other, self)

    def __floordiv__(self, other: Any) -> Expression:
        return _call("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return _call("floor_divide", other, self)

    def __mod__(self, other: Any) -> Expression:
        return _call("modulo", self, other)

    def __rmod__(self, other: Any) -> Expression:
        return _call("modulo", other, self)

    def __neg__(self) -> Expression:
        return _call("negate", self)

    def __abs__(self) -> Expression:
        return _call("abs", self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _call("equal", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _call("not_equal", self, other)

    def __lt__(self, other: Any) -> Expression:
        return _call("less", self, other)

    def __le__(self, other: Any) -> Expression:
        return _call("less_equal", self, other)

    def __gt__(self, other: Any) -> Expression:
        return _call("greater", self, other)

    def __ge__(self, other: Any) -> Expression:
        return _call("greater_equal", self, other)

    def __and__(self, other: Any) -> Expression:
        return _call("and", self, other)

    def __rand__(self, other: Any) -> Expression:
        return _call("and", other, self)

    def __or__(self, other: Any) -> Expression:
        return _call("or", self, other)

    def __ror__(self, other: Any) -> Expression:
        return _call("or", other, self)

    def __invert__(self) -> Expression:
        return _call("not", self)

    # `==` builds an expression, so equality cannot serve dictionaries; identity does.
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise BuildError(
            f"The expression {self!r} has no truth value before rows are there. Write & for `and`, | for"
            " `or`, ~ for `not`, .is_in([...]) for `in` and .between(a, b) for a < x < b."
        )

    def is_null(self) -> Expression:
        """True where there is no value; never null itself. NaN is a value."""
        return _call("is_null", self)

    def is_not_null(self) -> Expression:
        """True where there is a value; never null itself."""
        return _call("is_not_null", self)

    def is_in(self, values: Iterable[Any]) -> Expression:
        """True where the value is one of these constants; null where it is null."""
        if isinstance(values, str | bytes | Expression) or not isinstance(values, Iterable):
            raise BuildError(f"is_in takes a list of constants, not {values!r}.")
        return Call("is_in", (self,), tuple(_constant(value) for value in values))

    def between(self, low: Any, high: Any) -> Expression:
        """True from `low` to `high`, both included."""
        return _call("and", self >= low, self <= high)

    def cast(self, target: Any) -> Expression:
        """The value as another type (Python or Arrow); a value that does not fit is an error."""
        return Call("cast", (self,), (arrow_type(target),))

    def field(self, name: str) -> Expression:
        """One field of a nested value."""
        return Call("field", (self,), (_text(name, "field"),))

    def lower(self) -> Expression:
        """The text in lower case."""
        return _call("lower", self)

    def upper(self) -> Expression:
        """The text in upper case."""
        return _call("upper", self)

    def length(self) -> Expression:
        """How many characters the text has."""
        return _call("length", self)

    def starts_with(self, prefix: str) -> Expression:
        """True where the text begins so."""
        return Call("starts_with", (self,), (_text(prefix, "starts_with"),))

    def ends_with(self, suffix: str) -> Expression:
        """True where the text ends so."""
        return Call("ends_with", (self,), (_text(suffix, "ends_with"),))

    def contains(self, part: str) -> Expression:
        """True where this text occurs (as it is, not as a pattern)."""
        return Call("contains", (self,), (_text(part, "contains"),))


@dataclass(frozen=True, eq=False, repr=False)
class Column(Expression):
    """The values of one column."""

    name: str

    def __repr__(self) -> str:
        return f"col({self.name!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Expression):
    """The same value for every row."""

    value: Any

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expression):
    """An operation on other expressions; `options` are constants that belong to the operation."""

    operation: str
    arguments: tuple[Expression, ...]
    options: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        shown = [repr(argument) for argument in self.arguments]
        if self.operation in _INFIX:
            return f"({shown[0]} {_INFIX[self.operation]} {shown[1]})"
        if self.operation in _PREFIX:
            return f"{_PREFIX[self.operation]}{shown[0]}"
        if self.operation == "case":
            return _show_case(shown)
        if self.operation in ("coalesce", "abs"):
            return f"{self.operation}({', '.join(shown)})"
        inside = ", ".join(map(_show_option, self.options))
        if self.operation == "is_in":
            inside = f"[{inside}]"
        return f"{shown[0]}.{self.operation}({inside})"


@dataclass(frozen=True, eq=False)
class Branches:
    """The beginning of a `when` chain; `otherwise` completes it."""

    pairs: tuple[Expression, ...]
    condition: Expression | None = None

    def when(self, condition: Any) -> Branches:
        """One more condition, tried where none before it is true."""
        if self.condition is not None:
            raise BuildError("when(...) must be followed by .then(...) before the next .when(...).")
        return Branches(self.pairs, lit(condition))

    def then(self, value: Any) -> Branches:
        """The value where the condition before it is true."""
        if self.condition is None:
            raise BuildError(".then(...) must follow a when(...).")
        return Branches((*self.pairs, self.condition, lit(value)))

    def otherwise(self, value: Any) -> Expression:
        """The value where no condition is true. Completes the expression."""
        if self.condition is not None or not self.pairs:
            raise BuildError(".otherwise(...) must follow a .then(...).")
        return Call("case", (*self.pairs, lit(value)))


def col(name: str) -> Expression:
    """The column of this name."""
    return Column(_text(name, "col"))


def lit(value: Any) -> Expression:
    """A constant. Plain values beside an expression become one by themselves."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Branches):
        raise BuildError("A when(...).then(...) chain must end with .otherwise(...).")
    return Constant(_constant(value))


def when(condition: Any) -> Branches:
    """Choose by conditions: the first one that is true decides; null counts as not true.

    >>> when(col("price") > 100).then("high").otherwise("low")
    when((col('price') > 100)).then('high').otherwise('low')
    """
    return Branches(()).when(condition)


def coalesce(*values: Any) -> Expression:
    """The first of these that is not null.

    >>> coalesce(col("channel"), "unknown")
    coalesce(col('channel'), 'unknown')
    """
    if not values:
        raise BuildError("coalesce needs at least one value.")
    return _call("coalesce", *values)


def _call(operation: str, *arguments: Any) -> Expression:
    return Call(operation, tuple(lit(argument) for argument in arguments))


def _constant(value: Any) -> Any:
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if value is not None and not isinstance(value, _CONSTANTS):
        raise BuildError(
            f"{value!r} ({type(value).__name__}) cannot be a constant of an expression; use a number, a"
            " string, bytes, a bool, a date, an aware datetime, a timedelta, a Decimal or None."
        )
    if isinstance(value, datetime) and value.utcoffset() is None:
        raise BuildError(
            f"{value!r} has no time zone; give it one, for example datetime(..., tzinfo=timezone.utc)."
        )
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise BuildError(f"{value} does not fit into 64 bits.")
    return value


def _text(value: object, taker: str) -> str:
    if not isinstance(value, str):
        raise BuildError(f"{taker} takes a string, not {value!r}.")
    return value


def _show_option(option: Any) -> str:
    return f"'{option}'" if isinstance(option, pa.DataType) else repr(option)


def _show_case(shown: list[str]) -> str:
    pairs = zip(shown[:-1:2], shown[1::2], strict=True)
    return ".".join(f"when({c}).then({v})" for c, v in pairs) + f".otherwise({shown[-1]})"
