"""The function of a rolling reduce: for each row all rows of its key so far, as one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from headrace._graph.callables import describe_callable
from headrace.errors import BuildError
from headrace.process_functions import KeyedProcessFunction, ReduceFunction
from headrace.state import ReducingStateDescriptor

__all__ = ["RollingReduce", "reducer_of"]


class RollingReduce(KeyedProcessFunction):
    """Keeps one row a key."""

    def __init__(self, reducer: Callable[[Any, Any], Any], schema: pa.Schema) -> None:
        self._reducer = reducer
        self._row = pa.struct(list(schema))
        self.__name__ = f"reduce({getattr(reducer, '__name__', type(reducer).__name__)})"

    def open(self, ctx: Any) -> None:
        """One state, of the type of the rows; whether it may grow is asked where the step is built."""
        self._reduced = ctx.get_reducing_state(
            ReducingStateDescriptor("row", self._row, forever=True, reduce=self._reducer)
        )

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        """The reduced row so far."""
        del ctx
        self._reduced.add(value)
        return (self._reduced.get(),)


def reducer_of(function: Any) -> Callable[[Any, Any], Any]:
    """The function of two rows, checked as far as it can be."""
    if isinstance(function, type) and issubclass(function, ReduceFunction):
        raise BuildError(f"reduce takes an instance: {function.__name__}(), not the class.")
    reducer = function.reduce if isinstance(function, ReduceFunction) else function
    if not callable(reducer):
        raise BuildError(
            f"reduce takes a function of two rows that returns a row, or an hr.ReduceFunction, not {function!r}."
        )
    try:
        inspect.signature(reducer).bind(None, None)
    except TypeError:
        raise BuildError(
            f"reduce calls its function with two rows, but {describe_callable(reducer)} takes"
            f" {inspect.signature(reducer)}."
        ) from None
    except ValueError:
        pass  # a builtin that does not say its parameters
    return reducer
