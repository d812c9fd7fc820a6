"""The columns of what a user's function returns, found out before any job starts."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headrace._graph.callables import describe_callable
from headrace.errors import BuildError
from headrace.schema import as_schema, describe_fields, return_schema, return_type

__all__ = ["probed_schema", "result_schema"]


def result_schema(function: Any, schema: Any, verb: str, *, many: bool = False) -> pa.Schema:
    """The columns that a function on rows makes: as `schema` says, or else its annotation."""
    if schema is not None:
        return as_schema(schema)
    found = return_schema(function, many=many)
    if found is not None:
        return found
    kind = return_type(function, many=many)
    if kind is not None:
        return pa.schema([pa.field("value", kind)])
    written = "-> Iterator[Result]" if many else "-> Result"
    raise BuildError(
        f"{verb} cannot tell the columns of its result: annotate {describe_callable(function)} with"
        f" `{written}`, where Result is a dataclass or a TypedDict, or pass schema=Result."
    )


def probed_schema(function: Callable[[pa.RecordBatch], Any], schema: pa.Schema) -> pa.Schema:
    """The columns that a function on batches makes of an empty one."""
    empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
    try:
        result = function(empty)
    except Exception as error:
        raise BuildError(
            f"map_batches called {describe_callable(function)} with an empty batch to learn its columns,"
            f" and it raised {type(error).__name__}: {error}. The fields are {describe_fields(schema)}."
            " If it needs rows, pass schema=."
        ) from error
    if not isinstance(result, pa.RecordBatch | pa.Table):
        raise BuildError(
            f"map_batches needs a function that returns a pyarrow.RecordBatch, but"
            f" {describe_callable(function)} returned {type(result).__name__}."
        )
    return as_schema(result.schema)
