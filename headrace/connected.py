"""Two streams in one step: connected ones, and one that every shard gets as a whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from headrace._graph import nodes
from headrace._graph.graph import Graph
from headrace._graph.nodes import OnError, Port
from headrace._graph.validate import require_event_time
from headrace.errors import BuildError, SchemaError
from headrace.keyed import KeyedStream
from headrace.outputs import OutputTag
from headrace.process_functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from headrace.processed import ProcessResult, add_process, as_function
from headrace.stream import Stream

if TYPE_CHECKING:
    from headrace._graph.nodes import Node

__all__ = ["BroadcastConnectedStream", "BroadcastStream", "ConnectedStreams", "connected"]

_Keys: TypeAlias = str | Callable[[Any], Any] | Sequence[str]


class BroadcastStream:
    """A stream whose rows go to every shard; made by `Stream.broadcast`, for `connect`.

    payments.key_by("card").connect(rules.broadcast()).process(Check(), uid="check")
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

    def __repr__(self) -> str:
        return f"BroadcastStream('{self.uid}')"


class _Pair:
    """Two ports and the keys of each; no keys: ()."""

    def __init__(
        self, graph: Graph, ports: tuple[Port, Port], keys: tuple[tuple[str, ...], tuple[str, ...]]
    ) -> None:
        self._graph = graph
        self._ports = ports
        self._keys = keys

    @property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """The columns of the rows of both."""
        first, second = self._ports
        return self._graph.schema(first), self._graph.schema(second)

    def _process(
        self, step: type[nodes.ProcessStep], function: Any, options: dict[str, Any]
    ) -> ProcessResult:
        return add_process(self._graph, step, self._ports, function, **options)


class ConnectedStreams(_Pair):
    """Two streams for one function; if both have keys, rows with the same key share its state and timers.

    orders.connect(payments).key_by("id", "order").process(Match(), uid="match")
    """

    def key_by(
        self, first_keys: _Keys, second_keys: _Keys, *, key_type: Any = None
    ) -> ConnectedStreams:
        """Group the rows of both by keys of the same types: a column, several, or a function of a row.

        `key_type` is the type that functions without an annotation, such as lambdas, return.
        """
        if any(self._keys):
            raise BuildError(
                "These streams have keys already: connect(...).key_by(...) is for streams without."
            )
        first, second = (
            Stream(self._graph, port).key_by(
                *_as_keys(keys), key_type=key_type if callable(keys) else None
            )
            for port, keys in zip(self._ports, (first_keys, second_keys), strict=True)
        )
        return _keyed_pair(first, second)

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
        """What a `KeyedCoProcessFunction`, or without keys a `CoProcessFunction`, makes of the rows of both.

        The watermark is the lesser of the two. Within an epoch nothing is promised about the order between
        rows of the two, unless `ordered`: then rows of both come in the order of their timestamps, and
        `late` has the columns of both. The options are those of `KeyedStream.process`.
        """
        options = {
            "schema": schema, "side_outputs": side_outputs, "on_error": on_error,
            "limit": limit, "uid": uid,
        }  # fmt: skip
        if not any(self._keys):
            if ordered:
                raise BuildError("process(ordered=True) is for streams with keys; key both by ...")
            made = as_function(function, (CoProcessFunction,), "connect(...).process")
            return self._process(nodes.RowProcess, made, options)
        made = as_function(function, (KeyedCoProcessFunction,), "connect(...).key_by(...).process")
        if ordered:
            self._require_order()
        options |= {"kind": "co", "keys": self._keys, "ordered": ordered}
        return self._process(nodes.KeyedProcess, made, options)

    def _require_order(self) -> None:
        for port in self._ports:
            require_event_time(self._graph.nodes, port, "process(ordered=True)")
        first, second = self.schemas
        for field in first:
            if field.name in second.names and second.field(field.name).type != field.type:
                raise SchemaError(
                    f"process(ordered=True) has one output for late rows of both streams, but '{field.name}' is"
                    f" {field.type} in the first and {second.field(field.name).type} in the second; rename one"
                    " with select."
                )

    def __repr__(self) -> str:
        first, second = (_name(self._graph.nodes, port) for port in self._ports)
        return f"ConnectedStreams({first}, {second})"


class BroadcastConnectedStream(_Pair):
    """A stream, with keys or without, beside one whose rows every shard gets."""

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
        """What a `KeyedBroadcastProcessFunction`, or without keys a `BroadcastProcessFunction`, makes of the rows.

        In an epoch the broadcast rows come before the others, in the order of their sources' partitions. They do
        not hold back the watermark. What `process_broadcast_element` yields goes out once. Without keys, rows
        are dealt evenly to the shards.
        """
        kind: type = KeyedBroadcastProcessFunction if self._keys[0] else BroadcastProcessFunction
        if inspect.isroutine(function):
            raise BuildError(
                f"connect(...broadcast()).process takes an instance of a class derived from"
                f" hr.{kind.__name__}, because it needs two methods; not {function!r}."
            )
        options = {
            "schema": schema, "side_outputs": side_outputs, "on_error": on_error,
            "limit": limit, "uid": uid, "kind": "broadcast", "keys": self._keys,
        }  # fmt: skip
        made = as_function(function, (kind,), "connect(...broadcast()).process")
        return self._process(nodes.KeyedProcess, made, options)

    def __repr__(self) -> str:
        first, second = (_name(self._graph.nodes, port) for port in self._ports)
        return f"BroadcastConnectedStream({first}, {second})"


def connected(
    first: Stream | KeyedStream, second: Any
) -> ConnectedStreams | BroadcastConnectedStream:
    """What `connect` makes of two streams."""
    if not isinstance(second, Stream | KeyedStream | BroadcastStream):
        raise BuildError(
            f"connect takes a stream, a keyed stream or stream.broadcast(), not {second!r}."
        )
    graph, port = _place(first)
    other_graph, other = _place(second)
    if other_graph is not graph:
        uid = other_graph.nodes[other.node].uid
        raise BuildError(f"'{uid}' belongs to another Environment; a job has one.")
    if isinstance(second, BroadcastStream):
        keys = first.keys if isinstance(first, KeyedStream) else ()
        return BroadcastConnectedStream(graph, (port, other), (keys, ()))
    if isinstance(first, KeyedStream) and isinstance(second, KeyedStream):
        return _keyed_pair(first, second)
    if isinstance(first, KeyedStream) or isinstance(second, KeyedStream):
        raise BuildError(
            "connect takes two streams with keys or two without: call key_by on the other one too, or"
            " connect(...).key_by(first_keys, second_keys). If every shard is to get the rows of the other,"
            " connect(other.broadcast())."
        )
    return ConnectedStreams(graph, (port, other), ((), ()))


def _keyed_pair(first: KeyedStream, second: KeyedStream) -> ConnectedStreams:
    kinds = [[stream.schema.field(key).type for key in stream.keys] for stream in (first, second)]
    if kinds[0] != kinds[1]:
        raise SchemaError(
            "The keys of connected streams need the same types, because rows of both share state, but"
            f" they are {_typed(first)} and {_typed(second)}. Make them alike with select or map."
        )
    graph, port = _place(first)
    return ConnectedStreams(graph, (port, _place(second)[1]), (first.keys, second.keys))


def _place(stream: Any) -> tuple[Graph, Port]:
    return stream._graph, stream._port  # noqa: SLF001 - what all kinds of streams have


def _typed(stream: KeyedStream) -> str:
    return f"({', '.join(f'{key}: {stream.schema.field(key).type}' for key in stream.keys)})"


def _as_keys(keys: _Keys) -> tuple[Any, ...]:
    return tuple(keys) if isinstance(keys, list | tuple) else (keys,)


def _name(graph: Sequence[Node], port: Port) -> str:
    return f"'{graph[port.node].uid}'"
