"""The steps of a stream that look at one row or batch at a time: no keys, no time, no state.

They are one half of `headrace.stream.Stream`, which has the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace._graph import nodes
from headrace._graph.callables import check_row_function, require_callable
from headrace._graph.changes import CHANGE, carries_changes
from headrace._graph.graph import Graph
from headrace._graph.nodes import OnError, Port
from headrace._graph.results import probed_schema, result_schema
from headrace._graph.validate import check_columns, errors_port
from headrace._plan.columns import check_condition, named_column, unnamed_column
from headrace._runtime.expressions import result_type
from headrace.config import Retry
from headrace.errors import BuildError
from headrace.expressions import Expression
from headrace.schema import as_schema, describe_fields

if TYPE_CHECKING:
    from headrace.asynchronous import AsyncResult
    from headrace.routed import SplitStreams
    from headrace.stream import Stream

__all__ = ["StatelessSteps"]


class StatelessSteps:
    """What a stream is, and its steps without keys and time."""

    def __init__(self, graph: Graph, port: Port) -> None:
        self._graph = graph
        self._port = port

    @property
    def schema(self) -> pa.Schema:
        """The columns of a row."""
        return self._graph.schema(self._port)

    @property
    def uid(self) -> str:
        """The uid of the step that these rows come from."""
        return self._graph.nodes[self._port.node].uid

    @property
    def errors(self) -> Stream:
        """Dead letters: with `on_error="dead_letter"`, the rows on which the code of this step failed.

        Each has the row as JSON, the cause, the traceback, and the source partition and offset where they are known.
        """
        return self._stream(errors_port(self._graph.nodes, self._port))

    def map(
        self,
        function: Callable[[Any], Any],
        *,
        schema: Any = None,
        on_error: OnError = "fail",
        uid: str | None = None,
    ) -> Stream:
        """One row for each row, by a Python function.

        The function gets a row with its fields as attributes and returns a dataclass instance, a dict or a
        row. Its columns come from the return annotation or from `schema`; a function annotated with a
        single value, such as `int`, makes the column `value`. Timestamps stay. With `on_error="dead_letter"` a row
        on which the function fails, or whose result does not fit, goes to `errors` and the job goes on.
        """
        check_row_function(function, "map", self.schema)
        declared = result_schema(function, schema, "map")
        return self._stream(self._call(nodes.MapRows, declared, function, on_error, uid))

    def flat_map(
        self,
        function: Callable[[Any], Iterable[Any]],
        *,
        schema: Any = None,
        on_error: OnError = "fail",
        uid: str | None = None,
    ) -> Stream:
        """Any number of rows for each row: the function yields them or returns a list.

        Columns come from the annotation, `Iterator[X]` or `list[X]`, or from `schema`. New rows have the
        timestamp of the row that they come from. With `on_error="dead_letter"` a row on which the function fails
        goes to `errors`, and what it yielded before is undone.
        """
        check_row_function(function, "flat_map", self.schema, may_yield=True)
        declared = result_schema(function, schema, "flat_map", many=True)
        return self._stream(self._call(nodes.FlatMapRows, declared, function, on_error, uid))

    def filter(
        self,
        condition: Callable[[Any], bool] | Expression,
        *,
        on_error: OnError = "fail",
        uid: str | None = None,
    ) -> Stream:
        """The rows for which a condition is true: an expression, where null counts as false, or a function.

        With `on_error="dead_letter"` a row on which the function fails goes to `errors`.
        """
        check_condition(condition, self.schema, "filter")
        if not isinstance(condition, Expression):
            return self._stream(self._call(nodes.FilterRows, self.schema, condition, on_error, uid))
        if on_error != "fail":
            raise BuildError(
                "filter takes on_error= only with a function: it is for code that may raise."
            )
        return self._then(nodes.FilterBy, self.schema, uid=uid, condition=condition)

    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        schema: Any = None,
        *,
        on_error: OnError = "fail",
        uid: str | None = None,
    ) -> Stream:
        """Other columns by a function on Arrow record batches.

        Without `schema` the function is called once, here, with an empty batch, to learn its columns. If
        it returns as many rows as it got they keep their timestamps, otherwise they have none. With
        `on_error="dead_letter"` a batch on which it fails is halved and tried again, until the rows are found that it
        cannot take: these go to `errors`.
        """
        require_callable(function, "map_batches", "a pyarrow.RecordBatch")
        declared = probed_schema(function, self.schema) if schema is None else as_schema(schema)
        return self._stream(self._call(nodes.MapBatches, declared, function, on_error, uid))

    def map_async(
        self,
        function: Callable[[Any], Awaitable[Any]],
        *,
        ordered: bool = True,
        capacity: int = 100,
        timeout: timedelta | None = timedelta(seconds=10),
        retry: Retry | None = None,
        on_error: OnError = "fail",
        on_timeout: OnError | None = None,
        schema: Any = None,
        uid: str | None = None,
    ) -> AsyncResult:
        """One row for each row, by an `async def` function or an object with an `async def __call__`.

        At most `capacity` calls at a time in each task that runs the step, and none in flight when an epoch ends. An
        attempt that takes longer than `timeout` is cancelled and fails with a `TimeoutError`. What fails in the
        end fails the job or, with `on_error="dead_letter"`, goes to `errors`; `on_timeout` can say otherwise for time-outs.
        After a crash the calls of an epoch are made again. An object may have `open` and `close`, called once a process.
        """
        from headrace.asynchronous import AsyncResult, map_async_fields

        declared, fields = map_async_fields(
            self._stream(self._port),
            function,
            schema,
            ordered=ordered,
            capacity=capacity,
            timeout=timeout,
            retry=retry,
            on_error=on_error,
            on_timeout=on_timeout,
        )
        return AsyncResult(self._graph, self._add(nodes.MapAsync, declared, uid=uid, **fields))

    def select(
        self, *columns: str | Expression, uid: str | None = None, **named: str | Expression
    ) -> Stream:
        """New columns from names and expressions, computed on whole Arrow columns.

        bids.select("auction", hr.col("bidder"), usd=hr.col("price") * 0.908)
        """
        wanted = [unnamed_column(column, self.schema) for column in columns]
        wanted += [named_column(name, value) for name, value in named.items()]
        if not wanted:
            raise BuildError(
                f"select needs columns. The fields are {describe_fields(self.schema)}."
            )
        schema = pa.schema([pa.field(n, result_type(e, self.schema)) for n, e in wanted])
        return self._then(nodes.Select, schema, uid=uid, columns=tuple(wanted))

    def split(
        self,
        *,
        on_error: OnError = "fail",
        uid: str | None = None,
        **conditions: Expression | Callable[[Any], bool],
    ) -> SplitStreams:
        """Streams by name: each row goes to the first whose condition is true of it, or else to `rest`.

        parts = bids.split(big=hr.col("price") > 1_000, small=lambda row: row.price < 10)
        parts.big, parts.small, parts.rest
        """
        from headrace.routed import SplitStreams, checked_conditions

        checked = checked_conditions(conditions, self.schema)
        port = self._call(nodes.Split, self.schema, checked, on_error, uid)
        return SplitStreams(self._graph, port)

    def _stream(self, port: Port) -> Stream:
        from headrace.stream import Stream

        return Stream(self._graph, port)

    def _then(
        self, kind: type[nodes.Node], schema: pa.Schema, *, uid: str | None, **fields: Any
    ) -> Stream:
        return self._stream(self._add(kind, schema, uid=uid, **fields))

    def _call(
        self,
        kind: type[nodes.CodeStep],
        schema: pa.Schema,
        code: Any,
        on_error: Any,
        uid: str | None,
    ) -> Port:
        """A step that calls code of the user's."""
        from headrace.processed import check_on_error

        check_on_error(on_error)
        named = {"conditions" if kind is nodes.Split else "function": code}
        return self._add(kind, schema, uid=uid, on_error=on_error, **named)

    def _add(
        self, kind: type[nodes.Node], schema: pa.Schema, *, uid: str | None, **fields: Any
    ) -> Port:
        check_columns(schema, f"The result of {kind.verb}")
        self._keep_changes(kind, schema)
        node = self._graph.add(kind, uid=uid, inputs=(self._port,), schema=schema, **fields)
        return Port(node.id)

    def _keep_changes(self, kind: type[nodes.Node], schema: pa.Schema) -> None:
        if CHANGE not in schema.names and carries_changes(self._graph.nodes, self._port):
            raise BuildError(
                f"'{self.uid}' withdraws earlier results, told by the column '{CHANGE}', and {kind.verb} would"
                " lose it; keep it among the columns, or make the window accumulating."
            )
