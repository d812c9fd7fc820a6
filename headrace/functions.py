"""Function classes that users derive from when a plain function is not enough.

Deliberately absent: running them. Operators in `_runtime` do that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, get_type_hints

import pyarrow as pa

from headrace.errors import BuildError
from headrace.schema import arrow_type

__all__ = [
    "AggregateFunction",
    "ProcessWindowFunction",
    "accumulator_annotation",
    "accumulator_type",
    "result_type",
]


class AggregateFunction(ABC):
    """An aggregate of the user's own: it folds the rows of a key and window into one accumulator.

    The accumulator is kept as an Arrow value, never as a pickle, so `create_accumulator` and `get_result`
    say their types with a return annotation: int, float, str, bool, datetime, list[...], dict[...] or a
    dataclass. `merge` must give the same whichever way rows were split. Rows of one accumulator are added
    in the order in which they arrive within a source partition; nothing more is promised.

        class Longest(AggregateFunction):
            def create_accumulator(self) -> str:
                return ""

            def add(self, value, accumulator):
                return max(accumulator, value.url, key=len)

            def get_result(self, accumulator) -> str:
                return accumulator

            def merge(self, a, b):
                return max(a, b, key=len)
    """

    @abstractmethod
    def create_accumulator(self) -> Any:
        """The accumulator of no rows. Its return annotation is the type in which it is stored."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with one more row; it may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """The result. Its return annotation is the type of the result's column."""

    @abstractmethod
    def merge(self, a: Any, b: Any) -> Any:
        """One accumulator for the rows of both; it may be one of them, changed."""


class ProcessWindowFunction(ABC):
    """A function that is called once for every firing of a window of a key.

    It yields any number of rows; their columns come from the annotation of `process` or from `schema=`. A pair
    `tag, row` goes to a side output. Declared state (`name: hr.state.Value[int]`) is found twice: in
    `context.window_state` for this window of the key, and in `context.global_state` for all windows of the key.

        class Busiest(ProcessWindowFunction):
            def process(self, key, context, rows) -> Iterator[Busy]:
                if len(rows) > 100:
                    yield Busy(key, context.window.end, len(rows))
    """

    def open(self) -> None:
        """Called once in every task before the first row."""

    def close(self) -> None:
        """Called once in every task behind the last row."""

    @abstractmethod
    def process(self, key: Any, context: Any, rows: Sequence[Any]) -> Iterable[Any]:
        """The results of a firing.

        `key` is the value of the key, a tuple of values, or None behind `window_all`. `rows` are those of the window in order of arrival;
        behind aggregates there is one, with a field for each. `context` has `window`, `watermark`, `clock`,
        `pane`, `firing`, `window_state`, `global_state` and `output(tag, row)`.
        """

    def clear(self, context: Any) -> None:
        """The window is over: clear what you keep in `context.window_state`."""


def accumulator_annotation(function: AggregateFunction) -> Any:
    """What `create_accumulator` says it returns; a dataclass is rebuilt as an instance of this class."""
    return _annotation(function, "create_accumulator")


def accumulator_type(function: AggregateFunction) -> pa.DataType:
    """The Arrow type in which accumulators are stored."""
    return _annotated(function, "create_accumulator")


def result_type(function: AggregateFunction) -> pa.DataType:
    """The Arrow type of the result's column."""
    return _annotated(function, "get_result")


def _annotated(function: AggregateFunction, method: str) -> pa.DataType:
    annotation = _annotation(function, method)
    try:
        return arrow_type(annotation)
    except BuildError as error:
        raise BuildError(f"{type(function).__name__}.{method}: {error}") from None


def _annotation(function: AggregateFunction, method: str) -> Any:
    name = type(function).__name__
    try:
        hints = get_type_hints(getattr(type(function), method), include_extras=True)
    except NameError as error:
        raise BuildError(
            f"The return annotation of {name}.{method} cannot be resolved: {error}."
        ) from None
    annotation = hints.get("return", Any)
    if annotation is Any or annotation is type(None):
        raise BuildError(
            f"{name}.{method} needs a return annotation that says the type of what it returns, for"
            f" example `def {method}(self, ...) -> float:`."
        )
    return annotation
