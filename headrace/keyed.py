"""Streams with keys: what comes next has state for each key, or windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from headrace._graph import nodes
from headrace._graph.graph import Graph
from headrace._graph.join_nodes import Keep
from headrace._graph.nodes import OnError, Port
from headrace._graph.validate import errors_port, require_event_time
from headrace.joins import JoinSteps
from headrace.outputs import OutputTag
from headrace.process_functions import KeyedBatchFunction, KeyedProcessFunction, ReduceFunction
from headrace.stream import Stream
from headrace.windowed import WindowedStream, cut_into_windows
from headrace.windows import Assigner, Count

if TYPE_CHECKING:
    from headrace.connected import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
    from headrace.joined import JoinResult
    from headrace.processed import ProcessResult

__all__ = ["KeyedStream"]


class KeyedStream(JoinSteps):
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

    @property
    def errors(self) -> Stream:
        """Dead letters: with `key_by(function, on_error="dead_letter")`, the rows on which the function failed."""
        return Stream(self._graph, errors_port(self._graph.nodes, self._port))

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
        on_error: OnError = "fail",
        uid: str | None = None,
    ) -> ProcessResult:
        """For each row what all rows of its key so far make together: two rows become one, in order of arrival.

        The function returns a row of the same columns, as a row, a dict or a dataclass. The first row of a key comes out as
        it is. With `on_error="dead_letter"` a row on which the function fails goes to `errors` and is not folded in.
        State: a row for every key that ever came; `forever=True` says that this is meant.

            payments.key_by("card").reduce(lambda a, b: b._replace(amount=a.amount + b.amount), uid="totals")
        """
        from headrace.processed import add_reduce

        Stream(self._graph, self._port)._keep_changes(nodes.KeyedProcess, pa.schema([]))  # noqa: SLF001 - a stream of the same rows
        return add_reduce(
            self._graph,
            self._port,
            self._keys,
            function,
            forever=forever,
            on_error=on_error,
            uid=uid,
        )

    def first(
        self, *, ttl: timedelta | None = None, forever: bool = False, uid: str | None = None
    ) -> JoinResult:
        """The first row of each key that arrives; all others are dropped.

        State: a row for every key, for `ttl` by the clock or for ever, which `forever=True` says is meant. A join behind it
        keeps the row itself, and knows that there is only one.
        """
        from headrace.joined_regular import add_keep

        return add_keep(self, Keep("first"), ttl=ttl, forever=forever, uid=uid)

    def last(
        self, *, ttl: timedelta | None = None, forever: bool = False, uid: str | None = None
    ) -> JoinResult:
        """The last row of each key that has arrived, as changes: it replaces the one before it.

        Results have the column `change`: "+I" for the first row of a key, then "-U" with the old one and "+U" with the
        new. If the stream carries changes itself, a row that is deleted there is deleted here. State: as of `first`.
        """
        from headrace.joined_regular import add_keep

        return add_keep(self, Keep("last"), ttl=ttl, forever=forever, uid=uid)

    def top(
        self,
        by: str | Sequence[str],
        *,
        descending: bool | Sequence[bool] = True,
        ttl: timedelta | None = None,
        forever: bool = False,
        uid: str | None = None,
    ) -> JoinResult:
        """The best row of each key so far, by one or several columns, as changes; of equal ones the first.

        By default the greatest is the best. Nulls are the worst. State: as of `first`.

            bids.key_by("auction").top(["price", "date_time"], descending=[True, False], uid="winning")
        """
        from headrace.joined_regular import add_keep, top_of

        return add_keep(self, top_of(by, descending), ttl=ttl, forever=forever, uid=uid)

    def window(self, window: Assigner) -> WindowedStream:
        """Cut the rows of every key into windows: one of `hr.windows`, or your own `WindowAssigner`."""
        return cut_into_windows(self._graph, self._port, self._keys, window, "window")

    def count_window(self, size: int, slide: int | None = None) -> WindowedStream:
        """Every `size` rows of a key, or with `slide` the last `size` rows after every `slide` rows."""
        return self.window(Count(size, slide))
