"""Streams: every method adds one node to the graph and returns the stream behind it.

A stream is a name for one output of one node; it is immutable and may be used any number of times, each
use receiving all rows. Mistakes raise `BuildError` on the line of the call. Nothing runs here, with one
exception that `map_batches` documents. Deliberately absent: windows (`headrace.windowed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from headrace._graph import nodes
from headrace._graph.callables import check_row_function, describe_callable, require_callable
from headrace._graph.changes import CHANGE, carries_changes
from headrace._graph.graph import Graph, keeps_origins
from headrace._graph.nodes import ERRORS, OnError, Port
from headrace._graph.results import probed_schema, result_schema
from headrace._graph.validate import check_columns, require_event_time, schema_differences
from headrace._plan.strategies import check_assigned_strategy
from headrace._runtime.expressions import result_type
from headrace.endpoints import Sink
from headrace.errors import BuildError, SchemaError
from headrace.expressions import Column, Expression, col
from headrace.keys import check_key_type
from headrace.outputs import OutputTag
from headrace.process_functions import (
    KeyedBatchFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ReduceFunction,
)
from headrace.schema import (
    arrow_type,
    as_schema,
    describe_fields,
    require_field,
    return_type,
)
from headrace.watermarks import WatermarkStrategy
from headrace.windows import Assigner, Count, Session
from headrace.windows.assigner import check_time

if TYPE_CHECKING:
    from headrace.connected import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
    from headrace.processed import ProcessResult
    from headrace.windowed import WindowedStream

__all__ = ["KeyedStream", "SourceStream", "Stream", "TimedStream"]


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

    def map(
        self, function: Callable[[Any], Any], *, schema: Any = None, uid: str | None = None
    ) -> Stream:
        """One row for each row, by a Python function.

        The function gets a row with its fields as attributes and returns a dataclass instance, a dict or a
        row. Its columns come from the return annotation or from `schema`; a function annotated with a
        single value, such as `int`, makes the column `value`. Timestamps stay.
        """
        check_row_function(function, "map", self.schema)
        declared = result_schema(function, schema, "map")
        return self._then(nodes.MapRows, declared, uid=uid, function=function)

    def flat_map(
        self,
        function: Callable[[Any], Iterable[Any]],
        *,
        schema: Any = None,
        uid: str | None = None,
    ) -> Stream:
        """Any number of rows for each row: the function yields them or returns a list.

        Columns come from the annotation, `Iterator[X]` or `list[X]`, or from `schema`. New rows have the
        timestamp of the row that they come from.
        """
        check_row_function(function, "flat_map", self.schema, may_yield=True)
        declared = result_schema(function, schema, "flat_map", many=True)
        return self._then(nodes.FlatMapRows, declared, uid=uid, function=function)

    def filter(
        self, condition: Callable[[Any], bool] | Expression, *, uid: str | None = None
    ) -> Stream:
        """The rows for which a condition is true: an expression, where null counts as false, or a function."""
        if isinstance(condition, Expression):
            kind = result_type(condition, self.schema)
            _require_bool(kind, repr(condition))
            return self._then(nodes.FilterBy, self.schema, uid=uid, condition=condition)
        check_row_function(condition, "filter", self.schema)
        _require_bool(return_type(condition), describe_callable(condition))
        return self._then(nodes.FilterRows, self.schema, uid=uid, function=condition)

    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        schema: Any = None,
        *,
        uid: str | None = None,
    ) -> Stream:
        """Other columns by a function on Arrow record batches.

        Without `schema` the function is called once, here, with an empty batch, to learn its columns. If
        it returns as many rows as it got they keep their timestamps, otherwise they have none.
        """
        require_callable(function, "map_batches", "a pyarrow.RecordBatch")
        declared = probed_schema(function, self.schema) if schema is None else as_schema(schema)
        return self._then(nodes.MapBatches, declared, uid=uid, function=function)

    def select(
        self, *columns: str | Expression, uid: str | None = None, **named: str | Expression
    ) -> Stream:
        """New columns from names and expressions, computed on whole Arrow columns.

        bids.select("auction", hr.col("bidder"), usd=hr.col("price") * 0.908)
        """
        wanted = [_unnamed_column(column, self.schema) for column in columns]
        wanted += [_named_column(name, value) for name, value in named.items()]
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
        self, *keys: str | Callable[[Any], Any], key_type: Any = None, uid: str | None = None
    ) -> KeyedStream:
        """Group rows by columns, or by a function of the row whose result becomes the column `key`.

        The function's type comes from its return annotation or from `key_type`. A row whose key is null
        goes to the `errors` output of the step behind, and is counted.
        """
        if len(keys) == 1 and not isinstance(keys[0], str):
            return self._key_by_function(keys[0], key_type, uid)
        if key_type is not None or uid is not None:
            raise BuildError("key_by takes key_type= and uid= only with a function.")
        _check_keys(keys, self.schema)
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

    def window_all(self, window: Assigner) -> WindowedStream:
        """Cut all rows into windows, whatever their key.

        Aggregates are computed in two phases: first where rows are read, then all together, so no shard
        carries the whole stream. A process function gets all rows of a window, hence in one shard.
        """
        return _windowed(self._graph, self._port, (), window, "window_all")

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

    def _key_by_function(self, function: Any, key_type: Any, uid: str | None) -> KeyedStream:
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
        _check_keys(("key",), schema)
        port = self._add(nodes.KeyByFunction, schema, uid=uid, function=function)
        return KeyedStream(self._graph, port, ("key",))

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


class KeyedStream:
    """Rows grouped by key: what comes next sees all rows of a key together.

    bids.key_by("auction").window(hr.windows.Tumbling(timedelta(seconds=10)))
    """

    def __init__(self, graph: Graph, port: Port, keys: tuple[str, ...]) -> None:
        self._graph = graph
        self._port = port
        self._keys = keys

    @property
    def schema(self) -> pa.Schema:
        """The columns of a row, those of the key among them."""
        return self._graph.schema(self._port)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the key."""
        return self._keys

    def process(
        self,
        function: Any,
        *,
        schema: Any = None,
        side_outputs: Sequence[OutputTag] = (),
        ordered: bool = False,
        on_error: OnError = "fail",
        limit: timedelta | None = None,
        uid: str | None = None,
    ) -> ProcessResult:
        """What a `KeyedProcessFunction`, with state and timers for each key, makes of the rows.

        Rows of a key come in the order of their arrival or, with `ordered`, in that of their timestamps: they wait until
        the watermark has passed them, and what comes behind it goes to `late`. A `KeyedBatchFunction` gets all
        rows of a shard at once, as columns. With `on_error="dead_letter"` a row on which the code fails goes to
        `errors`, and its state, timers and results are undone. A call that takes longer than `limit` fails.
        State: what the function declares, and the rows that wait.
        """
        from headrace.processed import add_process, as_function

        Stream(self._graph, self._port)._keep_changes(nodes.KeyedProcess, pa.schema([]))  # noqa: SLF001 - of this module
        kinds = (KeyedProcessFunction, KeyedBatchFunction)
        made = as_function(function, kinds, "key_by(...).process")
        if ordered:
            require_event_time(self._graph.nodes, self._port, "process(ordered=True)")
        return add_process(
            self._graph,
            nodes.KeyedProcess,
            [self._port],
            made,
            schema=schema,
            side_outputs=side_outputs,
            on_error=on_error,
            limit=limit,
            uid=uid,
            kind="batch" if isinstance(made, KeyedBatchFunction) else "keyed",
            keys=(self._keys,),
            ordered=ordered,
        )

    @overload
    def connect(self, other: KeyedStream) -> ConnectedStreams: ...
    @overload
    def connect(self, other: BroadcastStream) -> BroadcastConnectedStream: ...
    def connect(self, other: Any) -> ConnectedStreams | BroadcastConnectedStream:
        """This stream and another with keys of the same types, or a broadcast one, for one function."""
        from headrace.connected import connected

        return connected(self, other)

    def reduce(
        self,
        function: Callable[[Any, Any], Any] | ReduceFunction,
        *,
        forever: bool = False,
        uid: str | None = None,
    ) -> ProcessResult:
        """For each row what all rows of its key so far make together: two rows become one, in order of arrival.

        The function returns a row of the same columns, as a row, a dict or a dataclass. The first row of a key comes out as
        it is. State: a row for every key that ever came; `forever=True` says that this is meant.

            payments.key_by("card").reduce(lambda a, b: b._replace(amount=a.amount + b.amount), uid="totals")
        """
        from headrace.processed import add_reduce

        Stream(self._graph, self._port)._keep_changes(nodes.KeyedProcess, pa.schema([]))  # noqa: SLF001 - of this module
        return add_reduce(self._graph, self._port, self._keys, function, forever=forever, uid=uid)

    def window(self, window: Assigner) -> WindowedStream:
        """Cut the rows of every key into windows: one of `hr.windows`, or your own `WindowAssigner`."""
        return _windowed(self._graph, self._port, self._keys, window, "window")

    def count_window(self, size: int, slide: int | None = None) -> WindowedStream:
        """Every `size` rows of a key, or with `slide` the last `size` rows after every `slide` rows."""
        return self.window(Count(size, slide))


def _windowed(
    graph: Graph, port: Port, keys: tuple[str, ...], window: Assigner, verb: str
) -> WindowedStream:
    from headrace.windowed import WindowedStream

    if not isinstance(window, Assigner):
        raise BuildError(
            f"{verb} takes one of hr.windows, for example windows.Tumbling(size) or"
            f" windows.Session(gap), not {window!r}."
        )
    check_time(window.time)
    if window.time == "event" and window.needs_event_time:
        require_event_time(graph.nodes, port, verb)
    if isinstance(window, Session):
        _require_gap(window, graph.schema(port))
    return WindowedStream(graph, port, keys, window)


def _require_gap(session: Session, schema: pa.Schema) -> None:
    gap = session.gap
    if callable(gap):
        check_row_function(gap, "Session.dynamic", schema)
    elif gap is not None:
        kind = result_type(col(gap) if isinstance(gap, str) else gap, schema)
        if not pa.types.is_duration(kind):
            raise SchemaError(
                f"The gap of a session must be a duration (timedelta), but {gap!r} is {kind}; make one with"
                " a function: Session.dynamic(lambda row: timedelta(seconds=row.seconds))."
            )


def _require_bool(kind: pa.DataType | None, what: str) -> None:
    if kind is not None and not pa.types.is_boolean(kind):
        raise SchemaError(f"filter needs a condition that is true or false, but {what} is {kind}.")


def _unnamed_column(column: Any, schema: pa.Schema) -> tuple[str, Expression]:
    if isinstance(column, Column):
        column = column.name
    if isinstance(column, Expression):
        raise BuildError(f"select needs a name for {column!r}: write select(name={column!r}).")
    require_field(schema, column, what="select")
    return column, col(column)


def _named_column(name: str, value: Any) -> tuple[str, Expression]:
    if isinstance(value, str):
        return name, col(value)
    if not isinstance(value, Expression):
        raise BuildError(
            f"select({name}=...) takes an expression or the name of a column, not {value!r}; a constant"
            f" is hr.lit({value!r})."
        )
    return name, value


def _check_keys(keys: Iterable[Any], schema: pa.Schema) -> None:
    keys = tuple(keys)
    if not keys:
        raise BuildError(f"key_by needs columns. The fields are {describe_fields(schema)}.")
    for key in keys:
        if callable(key):
            raise BuildError("key_by takes one function alone, or names of columns.")
        kind = require_field(schema, key, what="key_by").type
        if not check_key_type(kind):
            raise SchemaError(
                f"key_by: '{key}' is {kind}, which cannot be a key; keys are numbers, strings, bytes,"
                " booleans, dates, times and decimals."
            )
        if keys.count(key) > 1:
            raise BuildError(f"key_by names '{key}' twice.")
