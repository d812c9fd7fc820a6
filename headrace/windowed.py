"""Windows over keyed streams: how late rows may be, and what is computed.

Every call returns another object, so the order of calls cannot lose a setting. Results carry the key,
`window_start`, `window_end` and `firing`: 0 when the watermark passed the window, 1, 2, ... each time that
rows within the allowed lateness changed it. A row that is too late for all its windows goes to `late`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headrace._graph.graph import Graph
from headrace._graph.nodes import ERRORS, LATE, Port, WindowAggregate
from headrace._graph.validate import check_columns
from headrace.aggregates import Aggregate, as_aggregate
from headrace.config import to_us
from headrace.errors import BuildError
from headrace.functions import AggregateFunction, accumulator_type
from headrace.stream import Stream
from headrace.windows import Window

__all__ = ["WindowResult", "WindowedStream"]

_INSTANT = pa.timestamp("us", tz="UTC")
_ADDED = (
    pa.field("window_start", _INSTANT),
    pa.field("window_end", _INSTANT),
    pa.field("firing", pa.int64()),
)


class WindowedStream:
    """Rows grouped by key and cut into windows.

    keyed.window(windows.Tumbling(timedelta(seconds=10))).aggregate(bids=hr.count(), uid="per-auction")
    """

    def __init__(
        self,
        graph: Graph,
        port: Port,
        keys: tuple[str, ...],
        window: Window,
        *,
        lateness_us: int = 0,
    ) -> None:
        self._graph = graph
        self._port = port
        self._keys = keys
        self._window = window
        self._lateness_us = lateness_us

    def allowed_lateness(self, lateness: timedelta) -> WindowedStream:
        """Keep windows so much longer: rows that come in this time fire their window again.

        The default is zero: a row behind the watermark of all its windows goes to `late`.
        """
        lateness_us = to_us(lateness, "The allowed lateness", positive=False)
        return WindowedStream(
            self._graph, self._port, self._keys, self._window, lateness_us=lateness_us
        )

    def aggregate(
        self, *, uid: str | None = None, **aggregates: Aggregate | AggregateFunction | type
    ) -> WindowResult:
        """One row a key and window, with a column for each aggregate.

        State: one accumulator for each live key, pane and aggregate, until the lateness has passed.
        """
        schema = self._graph.schema(self._port)
        wanted = self._checked(aggregates)
        node = self._graph.add(
            WindowAggregate,
            uid=uid,
            inputs=(self._port,),
            schema=self._result_schema(wanted, schema),
            keys=self._keys,
            window=self._window,
            lateness_us=self._lateness_us,
            aggregates=tuple(wanted.items()),
            input_schema=schema,
        )
        return WindowResult(self._graph, Port(node.id))

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Aggregate]:
        if not given:
            raise BuildError(
                "aggregate needs at least one result, for example aggregate(bids=hr.count())."
            )
        taken = [*self._keys, *(field.name for field in _ADDED)]
        wanted = {}
        for name, value in given.items():
            if name in taken:
                raise BuildError(
                    f"aggregate({name}=...) would hide the column '{name}' of the result; choose a"
                    f" name other than {', '.join(taken)}."
                )
            wanted[name] = _checked_aggregate(value, name)
        return wanted

    def _result_schema(self, aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> pa.Schema:
        added = [field.name for field in _ADDED]
        if hidden := [key for key in self._keys if key in added]:
            raise BuildError(
                f"The key '{hidden[0]}' would have the name of a column that every window adds"
                f" ({', '.join(added)}); rename it first: select(..., other=hr.col('{hidden[0]}'))."
            )
        results = [pa.field(name, a.result_type(schema)) for name, a in aggregates.items()]
        fields = [*(schema.field(key) for key in self._keys), *_ADDED, *results]
        return check_columns(pa.schema(fields), "The result of aggregate")


class WindowResult(Stream):
    """The results of a window, and beside them the rows that did not get in."""

    @property
    def late(self) -> Stream:
        """Rows that came too late for all their windows, as they were. Counted even if nobody takes them."""
        return Stream(self._graph, Port(self._port.node, LATE))

    @property
    def errors(self) -> Stream:
        """Rows whose key is null, with the cause."""
        return Stream(self._graph, Port(self._port.node, ERRORS))


def _checked_aggregate(value: Any, name: str) -> Aggregate:
    if callable(value) and not isinstance(value, type | AggregateFunction):
        raise BuildError(
            f"aggregate({name}=...) got the function {getattr(value, '__name__', value)!r}; call it, as"
            " in hr.count() or hr.sum('price'), or derive from hr.AggregateFunction."
        )
    aggregate = as_aggregate(value, name)
    if aggregate.function is not None:
        accumulator_type(aggregate.function)
    return aggregate
