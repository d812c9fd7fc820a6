"""Streams: every method adds one node to the graph and returns the stream behind it.

A stream is a name for one output of one node; it is immutable and may be used any number of times, each
use receiving all rows. Mistakes raise `BuildError` on the line of the call. Nothing runs here, with one
exception that `map_batches` documents. Steps on single rows are in `headrace.stateless`. Deliberately absent:
keys (`headrace.keyed`) and windows (`headrace.windowed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from headrace._graph import nodes
from headrace._graph.callables import check_row_function, describe_callable
from headrace._graph.changes import carries_changes
from headrace._graph.graph import keeps_origins
from headrace._graph.nodes import ERRORS, OnError, Port
from headrace._graph.validate import schema_differences
from headrace._plan.columns import check_keys
from headrace._plan.strategies import check_assigned_strategy
from headrace.endpoints import Sink
from headrace.errors import BuildError, SchemaError
from headrace.expressions import Expression
from headrace.joins import JoinSteps
from headrace.outputs import OutputTag
from headrace.process_functions import ProcessFunction
from headrace.schema import arrow_type, describe_fields, return_type
from headrace.stateless import StatelessSteps
from headrace.watermarks import WatermarkStrategy
from headrace.windows import Assigner

if TYPE_CHECKING:
    from headrace.connected import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
    from headrace.keyed import KeyedStream
    from headrace.processed import ProcessResult
    from headrace.windowed import WindowedStream

__all__ = ["SourceStream", "Stream", "TimedStream"]


class Stream(StatelessSteps, JoinSteps):
    """Rows of one schema on their way through a job. Made by `Environment.from_source` and by steps.

    bids.filter(hr.col("price") > 100).select("auction", usd=hr.col("price") * 0.908).sink_to(sink)
    """

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
