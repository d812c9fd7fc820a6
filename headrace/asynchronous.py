"""Steps that wait for answers from elsewhere: what a call of `map_async` makes of a coroutine function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace._graph.callables import check_row_function
from headrace._graph.nodes import ERRORS, OnError, Port
from headrace._graph.results import result_schema
from headrace.config import Retry, to_us
from headrace.errors import BuildError
from headrace.processed import check_on_error
from headrace.stream import Stream

__all__ = ["AsyncResult", "map_async_fields"]


class AsyncResult(Stream):
    """The results of a coroutine function, and the rows that have none."""

    @property
    def errors(self) -> Stream:
        """Dead letters: rows whose last attempt failed or took too long, if the step sends those here."""
        return Stream(self._graph, Port(self._port.node, ERRORS))


def map_async_fields(
    stream: Stream,
    function: Callable[[Any], Awaitable[Any]],
    schema: Any,
    *,
    ordered: bool,
    capacity: int,
    timeout: timedelta | None,
    retry: Retry | None,
    on_error: OnError,
    on_timeout: OnError | None,
) -> tuple[pa.Schema, dict[str, Any]]:
    """The columns of the results and the fields of the node, checked."""
    check_row_function(function, "map_async", stream.schema, awaited=True)
    check_on_error(on_error)
    if on_timeout is not None:
        check_on_error(on_timeout, "on_timeout")
    if type(capacity) is not int or capacity < 1:
        raise BuildError(
            f"capacity={capacity!r}: it is the number of calls at a time, a whole number of 1 or more."
        )
    if retry is not None and not isinstance(retry, Retry):
        raise BuildError(f"retry={retry!r}: it must be hr.Retry(attempts=...) or None.")
    return result_schema(function, schema, "map_async"), {
        "function": function,
        "ordered": bool(ordered),
        "capacity": capacity,
        "limit_us": None if timeout is None else to_us(timeout, "timeout"),
        "retry": retry,
        "on_error": on_error,
        "on_timeout": on_timeout or on_error,
    }
