"""Streams: every method adds one node to the graph and returns the stream behind it.

A stream is a name for one output of one node; it is immutable and may be used any number of times, each
use receiving all rows. Mistakes raise `BuildError` on the line of the call. Nothing runs here, with one
exception that `map_batches` documents. Deliberately absent: keys (`headrace.keyed`), windows (`headrace.windowed`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from headrace._graph import nodes
from headrace._graph.callables import check_row_function, describe_callable, require_callable
from headrace._graph.changes import CHANGE, carries_changes
from headrace._graph.graph import Graph, keeps_origins
from headrace._graph.nodes import ERRORS, OnError, Port
from headrace._graph.results import probed_schema, result_schema
from headrace._graph.validate import (
    check_columns,
    errors_port,
    schema_differences,
)
from headrace._plan.columns import (
    check_condition,
    check_keys,
    named_column,
    unnamed_column,
)
from headrace._plan.strategies import check_assigned_strategy
from headrace._runtime.expressions import result_type
from headrace.config import Retry
from headrace.endpoints import Sink
from headrace.errors import BuildError, SchemaError
from headrace.expressions import Expression
from headrace.outputs import OutputTag
from headrace.process_functions import (
    ProcessFunction,
)
from headrace.schema import (
    arrow_type,
    as_schema,
    describe_fields,
    return_type,
)
from headrace.watermarks import WatermarkStrategy
from headrace.windows import Assigner

if TYPE_CHECKING:
    from headrace.asynchronous import AsyncResult
    from headrace.connected import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
    from headrace.keyed import KeyedStream
    from headrace.processed import ProcessResult
    from headrace.routed import SplitStreams
    from headrace.windowed import WindowedStream

__all__ = ["SourceStream", "Stream", "TimedStream"]


class Stream:
    """Rows of one schema on their way through a job. Made by `Environment.from_source` and by steps.

    bids.filter(hr.col("price") > 100).select("auction", usd=hr.col("price") * 0.908).sink_to(sink)
    """

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
        return Stream(self._graph, errors_port(self._graph.nodes, self._port))

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
        return Stream(self._graph, self._call(nodes.MapRows, declared, function, on_error, uid))

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
        return Stream(self._graph, self._call(nodes.FlatMapRows, declared, function, on_error, uid))

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
            return Stream(
                self._graph, self._call(nodes.FilterRows, self.schema, condition, on_error, uid)
            )
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
        return Stream(self._graph, self._call(nodes.MapBatches, declared, function, on_error, uid))

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
            self,
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

    def union(self, *others: Stream, uid: str | None = None) -> Stream:
        """The rows of this stream and of others with the same columns, in no order between them."""
        if not others:
            raise BuildError("union needs at least one other stream.")
        for other in others:
            self._require_alike(other)
        inputs = (self._port, *(o._port for o in others))  # noqa: SLF001 - of this class
        node = self._graph.add(nodes.Union, uid=uid, inputs=inputs, schema=self.schema)
        return Stream(self._graph, Port(node.id))

    def assign_timestamps_and_watermarks(
        self, strategy: WatermarkStrategy, *, uid: str | None = None
    ) -> TimedStream:
        """The same rows with new timestamps, and with a watermark of their own from here on.

        Windows behind this step go by its watermark and not by those of the sources, which need no strategy
        then. It follows from the rows that have passed, one epoch later, as that of a source does: the least
        over source partitions where rows come straight from them, otherwise over the step as a whole. A row
        without a timestamp that can be used goes to `errors`.

            visits.map(parse).assign_timestamps_and_watermarks(strategy.with_timestamps("at"), uid="timed")
        """
        check_assigned_strategy(strategy, self.schema)
        by_partition = keeps_origins(self._graph.nodes, [self._port])
        port = self._add(
            nodes.AssignTimestamps,
            self.schema,
            uid=uid,
            strategy=strategy,
            by_partition=by_partition,
        )
        return TimedStream(self._graph, port)

    def key_by(
        self,
        *keys: str | Callable[[Any], Any],
        key_type: Any = None,
        on_error: OnError = "fail",
        uid: str | None = None,
    ) -> KeyedStream:
        """Group rows by columns, or by a function of the row whose result becomes the column `key`.

        The function's type comes from its return annotation or from `key_type`. A row whose key is null
        goes to the `errors` output of the step behind, and is counted; with `on_error="dead_letter"` one on which
        the function fails goes to `errors` of what this returns.
        """
        if len(keys) == 1 and not isinstance(keys[0], str):
            return self._key_by_function(keys[0], key_type, on_error, uid)
        if key_type is not None or uid is not None or on_error != "fail":
            raise BuildError("key_by takes key_type=, on_error= and uid= only with a function.")
        check_keys(keys, self.schema)
        from headrace.keyed import KeyedStream

        return KeyedStream(self._graph, self._port, tuple(str(key) for key in keys))

    def process(
        self,
        function: Any,
        *,
        schema: Any = None,
        side_outputs: Sequence[OutputTag] = (),
        on_error: OnError = "fail",
        limit: timedelta | None = None,
        uid: str | None = None,
    ) -> ProcessResult:
        """What a `ProcessFunction`, or a function of a row and its context, yields for each row.

        Rows go to the main output, or as `tag, row` to a side output. With `on_error="dead_letter"` a row on which the
        code fails goes to `errors` and leaves nothing else behind. A call that takes longer than `limit` fails.
        """
        from headrace.processed import add_process, as_function

        self._keep_changes(nodes.RowProcess, pa.schema([]))
        return add_process(
            self._graph,
            nodes.RowProcess,
            [self._port],
            as_function(function, (ProcessFunction,), "process"),
            schema=schema,
            side_outputs=side_outputs,
            on_error=on_error,
            limit=limit,
            uid=uid,
        )

    @overload
    def connect(self, other: Stream) -> ConnectedStreams: ...
    @overload
    def connect(self, other: BroadcastStream) -> BroadcastConnectedStream: ...
    def connect(self, other: Any) -> ConnectedStreams | BroadcastConnectedStream:
        """This stream and another, of other columns perhaps, for one function; `key_by` comes next, or `process`.

        orders.connect(payments).key_by("id", "order").process(Match(), uid="match")
        """
        from headrace.connected import connected

        return connected(self, other)

    def broadcast(self) -> BroadcastStream:
        """This stream for `connect`, where every shard is to get all its rows: rules, prices, a small table."""
        from headrace.connected import BroadcastStream

        return BroadcastStream(self._graph, self._port)

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

    def rebalance(self, *, uid: str | None = None) -> Stream:
        """The same rows, dealt out evenly to all shards: for dear steps behind few or uneven source partitions.

        The order of rows is lost. It costs a shuffle, and keeps no state.
        """
        if carries_changes(self._graph.nodes, self._port):
            raise BuildError(
                f"'{self.uid}' withdraws earlier results, and rebalance would tear a withdrawal from what replaces it;"
                " use partition_custom(...) by the key."
            )
        return self._then(nodes.Repartition, self.schema, uid=uid)

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int],
        key: str | Sequence[str] | Callable[[Any], Any],
        *,
        uid: str | None = None,
    ) -> Stream:
        """The same rows, each in the shard that `partitioner(key, partitions)` says.

        `key` is a column, several, of which it gets a tuple, or a function of the row; null is None. It returns a number
        below `partitions`, which is that of key groups, whatever the number of shards: a shard has a range of them.

            bids.partition_custom(lambda region, partitions: REGIONS[region] % partitions, "region")
        """
        from headrace.routed import partition_fields

        fields = partition_fields(partitioner, key, self.schema)
        return self._then(nodes.Repartition, self.schema, uid=uid, **fields)

    def window_all(self, window: Assigner) -> WindowedStream:
        """Cut all rows into windows, whatever their key.

        Aggregates are computed in two phases: first where rows are read, then all together, so no shard
        carries the whole stream. A process function gets all rows of a window, hence in one shard.
        """
        from headrace.windowed import cut_into_windows

        return cut_into_windows(self._graph, self._port, (), window, "window_all")

    def sink_to(self, sink: Sink, *, uid: str | None = None) -> None:
        """Send the rows out, exactly once. A stream may have several sinks."""
        if not isinstance(sink, Sink):
            raise BuildError(
                f"sink_to takes a sink such as files.FileSink(...) or memory.MemorySink(), not {sink!r}."
            )
        sink.validate(self.schema)
        self._add(nodes.WriteSink, self.schema, uid=uid, sink=sink)

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.uid}': {describe_fields(self.schema)})"

    def _then(
        self, kind: type[nodes.Node], schema: pa.Schema, *, uid: str | None, **fields: Any
    ) -> Stream:
        return Stream(self._graph, self._add(kind, schema, uid=uid, **fields))

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

    def _key_by_function(
        self, function: Any, key_type: Any, on_error: Any, uid: str | None
    ) -> KeyedStream:
        if isinstance(function, Expression):
            raise BuildError(
                f"key_by takes names of columns or a function, not the expression {function!r}; name it"
                ' first: select(..., bucket=expression).key_by("bucket").'
            )
        check_row_function(function, "key_by", self.schema)
        if "key" in self.schema.names:
            raise SchemaError(
                "key_by with a function adds the column 'key', but the rows have one already; rename it"
                " with select, or key by it."
            )
        kind = return_type(function) if key_type is None else arrow_type(key_type)
        if kind is None:
            raise BuildError(
                f"key_by cannot tell the type of the key: annotate what {describe_callable(function)}"
                " returns, or pass key_type=, for example key_type=int."
            )
        schema = self.schema.append(pa.field("key", kind))
        check_keys(("key",), schema)
        from headrace.keyed import KeyedStream

        keyed = self._call(nodes.KeyByFunction, schema, function, on_error, uid)
        return KeyedStream(self._graph, keyed, ("key",))

    def _require_alike(self, other: Stream) -> None:
        if not isinstance(other, Stream):
            raise BuildError(f"union takes streams, not {other!r}.")
        if other._graph is not self._graph:
            raise BuildError(f"'{other.uid}' belongs to another Environment; a job has one.")
        if differences := schema_differences(self.schema, other.schema):
            raise SchemaError(
                f"union needs streams with the same columns, but between '{self.uid}' and"
                f" '{other.uid}' {'; '.join(differences)}. Make them alike with select."
            )


class TimedStream(Stream):
    """Rows that were given timestamps here."""

    @property
    def errors(self) -> Stream:
        """What could not become a row: malformed, without a timestamp, or too far ahead."""
        return Stream(self._graph, Port(self._port.node, ERRORS))


class SourceStream(TimedStream):
    """The rows of a source."""
