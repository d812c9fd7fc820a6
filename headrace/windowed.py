"""Windows over streams: when they fire, how late rows may be, and what is computed.

Every call returns another object, so the order of calls cannot lose a setting. The results of aggregates carry
the key, `window_start` and `window_end` where windows have times, `pane` ("early", "on_time", "late", or "own" for
rows that were too late and got a window of their own) and `firing`: 0 for the first time that a key and window
fire, then 1, 2, ... A late firing is never 0. A row that is too late for all its windows goes to `late`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, get_args

import pyarrow as pa

from headrace._graph import nodes
from headrace._graph.changes import carries_changes
from headrace._graph.graph import Graph
from headrace._graph.nodes import ERRORS, LATE, Accumulation, OnLate, Port, WindowStep
from headrace._graph.results import result_schema
from headrace._graph.validate import require_event_time
from headrace._graph.windows import aggregate_node, check_aggregates, result_fields
from headrace._plan.columns import require_gap
from headrace.aggregates import Aggregate, check_retractable, reduce_of
from headrace.config import to_us
from headrace.errors import BuildError
from headrace.evictors import Evictor
from headrace.expressions import col
from headrace.functions import AggregateFunction, ProcessWindowFunction
from headrace.outputs import OutputTag
from headrace.schema import as_schema
from headrace.state import declared
from headrace.stream import Stream
from headrace.triggers import Trigger
from headrace.triggers.composed import purges
from headrace.windows import Assigner, Count, LookBack, Session, WindowAssigner
from headrace.windows.assigner import check_time

__all__ = ["WindowResult", "WindowedStream", "cut_into_windows"]


@dataclass(frozen=True)
class _Settings:
    """What was said so far."""

    window: Assigner
    lateness_us: int = 0
    on_late: OnLate = "side_output"
    trigger: Trigger | None = None
    accumulation: Accumulation = "accumulating"
    evictor: Evictor | None = None


class WindowedStream:
    """Rows grouped by key and cut into windows.

    keyed.window(windows.Tumbling(timedelta(seconds=10))).aggregate(bids=hr.count(), uid="per-auction")
    """

    def __init__(
        self, graph: Graph, port: Port, keys: tuple[str, ...], settings: Assigner | _Settings
    ) -> None:
        self._graph = graph
        self._port = port
        self._keys = keys
        self._said = settings if isinstance(settings, _Settings) else _Settings(settings)

    def allowed_lateness(self, lateness: timedelta) -> WindowedStream:
        """Keep windows so much longer: rows that come in this time fire their window again.

        The default is zero: a row behind the watermark of all its windows goes to `late`.
        """
        if not self._said.window.timed:
            raise BuildError(f"A window of {self._said.window} has no end that a row could miss.")
        lateness_us = to_us(lateness, "The allowed lateness", positive=False)
        return self._with(lateness_us=lateness_us)

    def on_late(self, policy: OnLate) -> WindowedStream:
        """What becomes of rows that are later than `allowed_lateness`. They are counted, whatever it is.

        "side_output": they go to `late` of the result, as they were; this is the default. "drop": they are
        dropped. "own_window": those of one epoch are collected in windows of their own, by key and time, whose
        results go out at once, with `pane` "own".
        """
        if policy not in get_args(OnLate):
            raise BuildError(
                f"on_late({policy!r}): choose {', '.join(repr(p) for p in get_args(OnLate))}."
            )
        if policy == "own_window" and not self._said.window.timed:
            raise BuildError(f"A window of {self._said.window} cannot be made for late rows alone.")
        return self._with(on_late=policy)

    def trigger(self, trigger: Trigger) -> WindowedStream:
        """When windows fire, instead of at their end: `hr.triggers.early(every=...)`, or one of your own."""
        if not isinstance(trigger, Trigger):
            raise BuildError(
                f"trigger takes one of hr.triggers, for example hr.triggers.count(100), not {trigger!r}."
            )
        if self._said.window.merging and not trigger.can_merge:
            raise BuildError(
                f"{trigger.name} cannot be used with windows that merge ({self._said.window}): it does not"
                " say can_merge, and has no on_merge."
            )
        declared(type(trigger))
        return self._with(trigger=trigger)

    def accumulating(self) -> WindowedStream:
        """Each firing is over all rows of the window. This is the default."""
        return self._with(accumulation="accumulating")

    def discarding(self) -> WindowedStream:
        """Each firing is over the rows since the one before: the sum of all firings is the whole."""
        return self._with(accumulation="discarding")

    def retracting(self) -> WindowedStream:
        """Each firing is over all rows, and the result before it is withdrawn first.

        Results get the column `change`: "+I" for a first result, then "-U" with the old one and "+U" with the new. A
        count, sum or average over such a stream stays right.
        """
        return self._with(accumulation="retracting")

    def evictor(self, evictor: Evictor) -> WindowedStream:
        """Leave out rows when a window fires. The window then keeps its rows, not only aggregates of them."""
        if not isinstance(evictor, Evictor):
            raise BuildError(
                f"evictor takes one of hr.evictors, for example hr.evictors.count(10), not {evictor!r}."
            )
        return self._with(evictor=evictor)

    def aggregate(
        self,
        *,
        then: ProcessWindowFunction | None = None,
        schema: Any = None,
        side_outputs: Sequence[OutputTag] = (),
        uid: str | None = None,
        **aggregates: Aggregate | AggregateFunction | type,
    ) -> WindowResult:
        """One row for each firing of a key and window, with a column for each aggregate.

        With `then` that function is called for each firing, with one row that has a field for each aggregate; its
        results go out instead. State: one accumulator for each live key, pane and aggregate.
        """
        columns = self._graph.schema(self._port)
        wanted = check_aggregates(aggregates, dict.fromkeys([*self._keys, *self._added()]))
        weighted = self._check_changes(wanted, then)
        if then is not None:
            results = self._function_schema(then, schema)
            return self._process(results, side_outputs, uid, aggregates=wanted, function=then)
        if schema is not None or side_outputs:
            raise BuildError(
                "aggregate takes schema= and side_outputs= only with then=function; the columns of aggregates"
                " follow from them."
            )
        results = result_fields(
            self._keys, self._said.window, self._said.accumulation, wanted, columns
        )
        kind, extra = aggregate_node(
            self._said.window,
            self._said.trigger,
            self._said.accumulation,
            self._said.evictor,
            late=self._said.lateness_us > 0,
        )
        return self._add(kind, results, uid, wanted, weighted=weighted, **extra)

    def reduce(
        self, function: Callable[[Any, Any], Any], *, uid: str | None = None
    ) -> WindowResult:
        """One row for each firing: two rows become one, and so on, until one is left.

        The function gets two rows and returns one with the same columns. It must not matter in which
        order and in which pairs.
        """
        if isinstance(self._said.window, LookBack):
            raise BuildError("A look-back keeps each row as it is; it cannot be reduced to one.")
        others = [name for name in self._graph.schema(self._port).names if name not in self._keys]
        reduced = self.aggregate(reduced=reduce_of(function), uid=uid)
        kept = [name for name in reduced.schema.names if name != "reduced"]
        if clash := [name for name in others if name in kept]:
            raise BuildError(
                f"reduce would have two columns named '{clash[0]}'; rename it first with select."
            )
        fields: dict[str, Any] = {name: col("reduced").field(name) for name in others}
        flat = reduced.select(*kept, **fields)
        return WindowResult(self._graph, flat._port, reduced._port.node)  # noqa: SLF001 - of this class

    def process(
        self,
        function: ProcessWindowFunction,
        *,
        schema: Any = None,
        side_outputs: Sequence[OutputTag] = (),
        uid: str | None = None,
    ) -> WindowResult:
        """What a `ProcessWindowFunction` yields for each firing, from all rows of the window.

        State: the rows of every window. If aggregates will do, `aggregate(..., then=function)` keeps far less.
        """
        self._check_changes({}, function)
        results = self._function_schema(function, schema)
        return self._process(results, side_outputs, uid, function=function)

    def process_batches(
        self,
        function: Callable[[pa.RecordBatch, Any], pa.RecordBatch],
        schema: Any,
        *,
        uid: str | None = None,
    ) -> WindowResult:
        """What a function makes of the rows of a window as one Arrow batch, for each firing.

        It is called as `function(batch, context)`, with the context that process functions have and `context.key`.
        """
        if not callable(function):
            raise BuildError(f"process_batches takes a function, not {function!r}.")
        self._check_changes({}, function)
        return self._process(as_schema(schema), (), uid, batches=function)

    def _with(self, **changed: Any) -> WindowedStream:
        said = replace(self._said, **changed)
        return WindowedStream(self._graph, self._port, self._keys, said)

    def _added(self) -> list[str]:
        if isinstance(self._said.window, LookBack):
            return list(self._graph.schema(self._port).names)
        return [
            f.name
            for f in result_fields(
                (), self._said.window, self._said.accumulation, {}, pa.schema([])
            )
        ]

    def _check_changes(self, aggregates: dict[str, Aggregate], function: Any) -> bool:
        if not carries_changes(self._graph.nodes, self._port):
            return False
        window = self._said.window
        by_row = isinstance(window, Count | LookBack | WindowAssigner)
        if function is not None or by_row or self._said.evictor is not None:
            raise BuildError(
                "These rows come from a retracting window, and only aggregates over windows of time, without an"
                " evictor, can take back what was withdrawn; aggregate them so, or make the first window"
                " accumulating."
            )
        by_clock = window.timed and window.time == "processing"
        if by_clock or self._said.accumulation == "discarding" or purges(self._said.trigger):
            raise BuildError(
                "These rows come from a retracting window, and a row can only be withdrawn where it was counted: "
                + (
                    "by the clock that is another window"
                    if by_clock
                    else "discarding and purging forget it"
                )
                + ". Use a window of event time that accumulates or retracts, or make the first window discarding."
            )
        for name, aggregate in aggregates.items():
            check_retractable(aggregate, name)
        return True

    def _function_schema(self, function: Any, schema: Any) -> pa.Schema:
        if not isinstance(function, ProcessWindowFunction):
            raise BuildError(
                f"process takes an instance of a class derived from hr.ProcessWindowFunction, not {function!r}."
            )
        declared(type(function))
        return result_schema(function.process, schema, "process", many=True)

    def _process(
        self,
        results: pa.Schema,
        side_outputs: Sequence[OutputTag],
        uid: str | None,
        *,
        aggregates: dict[str, Aggregate] | None = None,
        **fields: Any,
    ) -> WindowResult:
        if isinstance(self._said.window, LookBack):
            raise BuildError(
                "A look-back gives aggregates beside each row; it cannot be processed."
            )
        if self._said.accumulation == "retracting":
            raise BuildError(
                "What a function yields cannot be withdrawn; use retracting() with aggregates alone."
            )
        names = [tag.name for tag in _checked_tags(side_outputs)]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise BuildError(f"There are two side outputs named '{repeated[0]}'.")
        return self._add(
            nodes.WindowProcess,
            results,
            uid,
            aggregates or {},
            trigger=self._said.trigger,
            evictor=self._said.evictor,
            side_outputs=tuple((tag.name, tag.schema) for tag in side_outputs),
            **fields,
        )

    def _add(
        self,
        kind: type[WindowStep],
        results: pa.Schema,
        uid: str | None,
        aggregates: dict[str, Aggregate],
        **fields: Any,
    ) -> WindowResult:
        node = self._graph.add(
            kind,
            uid=uid,
            inputs=(self._port,),
            schema=results,
            keys=self._keys,
            window=self._said.window,
            lateness_us=self._said.lateness_us,
            on_late=self._said.on_late,
            accumulation=self._said.accumulation,
            aggregates=tuple(aggregates.items()),
            input_schema=self._graph.schema(self._port),
            **fields,
        )
        return WindowResult(self._graph, Port(node.id), node.id)


def cut_into_windows(
    graph: Graph, port: Port, keys: tuple[str, ...], window: Assigner, verb: str
) -> WindowedStream:
    """The rows of a port with these keys, in windows; `verb` is what the user called."""
    if not isinstance(window, Assigner):
        raise BuildError(
            f"{verb} takes one of hr.windows, for example windows.Tumbling(size) or"
            f" windows.Session(gap), not {window!r}."
        )
    check_time(window.time)
    if window.time == "event" and window.needs_event_time:
        require_event_time(graph.nodes, port, verb)
    if isinstance(window, Session):
        require_gap(window, graph.schema(port))
    return WindowedStream(graph, port, keys, window)


class WindowResult(Stream):
    """The results of a window, and beside them the rows that did not get in."""

    def __init__(self, graph: Graph, port: Port, step: int) -> None:
        super().__init__(graph, port)
        self._step = step

    @property
    def late(self) -> Stream:
        """Rows that came too late for all their windows, as they were. Counted even if nobody takes them."""
        node = self._graph.nodes[self._step]
        assert isinstance(node, WindowStep)
        if node.on_late != "side_output":
            raise BuildError(
                f"'{node.uid}' has no late output: on_late({node.on_late!r}) says what becomes of late rows."
            )
        return Stream(self._graph, Port(self._step, LATE))

    @property
    def errors(self) -> Stream:
        """Rows whose key is null, with the cause."""
        return Stream(self._graph, Port(self._step, ERRORS))

    def side_output(self, tag: OutputTag) -> Stream:
        """The rows that the function gave to this tag."""
        node = self._graph.nodes[self._step]
        (tag,) = _checked_tags([tag])
        outputs = dict(getattr(node, "side_outputs", ()))
        if tag.name not in outputs or not outputs[tag.name].equals(tag.schema):
            known = ", ".join(outputs) or "none"
            raise BuildError(
                f"'{node.uid}' has no side output {tag!r}; it has {known}. Declare it:"
                " process(..., side_outputs=[tag])."
            )
        return Stream(self._graph, Port(self._step, tag.name))


def _checked_tags(tags: object) -> Sequence[OutputTag]:
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, OutputTag) for tag in tags):
        raise BuildError(
            f"A side output is an hr.OutputTag(name, schema), and side_outputs= a list of them, not {tags!r}."
        )
    return tags
