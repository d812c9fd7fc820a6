"""Steps with process functions: what a call of `process` makes of a function, and the results with their outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, get_args

import pyarrow as pa

from headrace import process_functions
from headrace._graph import nodes
from headrace._graph.batch_steps import check_batch_step
from headrace._graph.callables import describe_callable
from headrace._graph.graph import Graph
from headrace._graph.lint import warn_of_unbounded, warn_of_unbounded_reduce
from headrace._graph.nodes import ERRORS, LATE, OnError, Port
from headrace._graph.results import result_schema
from headrace._graph.rolling import RollingReduce, reducer_of
from headrace._graph.state_kinds import check_kinds
from headrace._graph.states import recorded_states
from headrace._graph.tags import checked_tag, side_outputs_of
from headrace._graph.validate import check_columns, require_event_time
from headrace.config import to_us
from headrace.errors import BuildError
from headrace.outputs import OutputTag
from headrace.process_functions import KeyedBatchFunction
from headrace.schema import as_schema
from headrace.state import StateSpec, state_specs
from headrace.stream import Stream

__all__ = [
    "PlainFunction",
    "ProcessResult",
    "add_process",
    "add_reduce",
    "as_function",
    "check_on_error",
]


class PlainFunction:
    """A function of a row and its context, where a class is not needed."""

    def __init__(self, function: Callable[[Any, Any], Iterable[Any] | None]) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def open(self, ctx: Any) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """What the function says."""
        return self.function(value, ctx)


PlainFunction.open.__module__ = "headrace.process_functions"


class ProcessResult(Stream):
    """The results of a process function, and its other outputs."""

    @property
    def late(self) -> Stream:
        """Rows that came behind the watermark of a step with `ordered=True`, as they were."""
        node = self._graph.nodes[self._port.node]
        if not getattr(node, "ordered", False):
            raise BuildError(
                f"'{node.uid}' has no late output: a process function gets every row, unless ordered=True."
            )
        return Stream(self._graph, Port(node.id, LATE))

    @property
    def errors(self) -> Stream:
        """Dead letters: rows whose key is null and, with `on_error="dead_letter"`, those on which the code failed."""
        if isinstance(self._graph.nodes[self._port.node], nodes.RowProcess):
            return super().errors
        return Stream(self._graph, Port(self._port.node, ERRORS))

    def side_output(self, tag: OutputTag) -> Stream:
        """The rows that the function gave to this tag."""
        node = self._graph.nodes[self._port.node]
        outputs = dict(getattr(node, "side_outputs", ()))
        tag = checked_tag(tag)
        if tag.name not in outputs or not outputs[tag.name].equals(tag.schema):
            known = ", ".join(f"'{name}'" for name in outputs) or "none"
            raise BuildError(
                f"'{node.uid}' has no side output {tag!r}; it has {known}. Make the tag an attribute of the"
                " function's class, or declare it: process(..., side_outputs=[tag])."
            )
        return Stream(self._graph, Port(node.id, tag.name))


def add_process(
    graph: Graph,
    step: type[nodes.ProcessStep],
    inputs: Sequence[Port],
    function: Any,
    *,
    schema: Any = None,
    side_outputs: Sequence[OutputTag] = (),
    on_error: OnError = "fail",
    limit: timedelta | None = None,
    uid: str | None = None,
    **fields: Any,
) -> ProcessResult:
    """Add a step with a process function that was checked to be of the right class."""
    check_on_error(on_error)
    results = _results(function, schema)
    check_columns(results, "The result of process")
    if step is nodes.RowProcess and state_specs(type(function)):
        # Without keys it is the step itself that has state: rows are dealt to the shards.
        step = nodes.KeyedProcess
        fields = {"kind": "keyed" if len(inputs) == 1 else "co", "keys": ((),) * len(inputs)}
    recorded = recorded_states(function) if step is nodes.KeyedProcess else None
    if recorded is not None:
        _check_states(graph, inputs, function, recorded.specs, on_error, fields)
        # By name: state lies in tables in this order, and that of lines in a class may change.
        fields["states"] = tuple(sorted(recorded.specs, key=lambda spec: spec.name))
    node = graph.add(
        step,
        uid=uid,
        inputs=tuple(inputs),
        schema=results,
        function=function,
        input_schemas=tuple(map(graph.schema, inputs)),
        side_outputs=side_outputs_of(function, side_outputs),
        on_error=on_error,
        limit_us=None if limit is None else to_us(limit, "limit"),
        **fields,
    )
    if recorded is not None and isinstance(node, nodes.KeyedProcess):
        warn_of_unbounded(node, recorded.attributes)
    return ProcessResult(graph, Port(node.id))


def _check_states(
    graph: Graph, inputs: Sequence[Port], function: Any, specs: Sequence[StateSpec], on_error: OnError,
    fields: Mapping[str, Any],
) -> None:  # fmt: skip
    """Refuse state that cannot work in this step."""
    check_kinds(function, specs, fields["kind"], fields["keys"])
    if fields["kind"] == "batch":
        ordered = bool(fields.get("ordered"))
        check_batch_step(function, specs, fields["keys"][0], on_error, ordered=ordered)
    if mortal := [s.name for s in specs if s.ttl is not None and s.ttl.time == "event"]:
        what = f"State with a TTL in event time ('{mortal[0]}' of {type(function).__name__})"
        for port, keys in zip(inputs, fields["keys"], strict=True):
            if keys:
                require_event_time(graph.nodes, port, what)


def add_reduce(
    graph: Graph,
    port: Port,
    keys: tuple[str, ...],
    function: Any,
    *,
    forever: bool,
    on_error: OnError,
    uid: str | None,
) -> ProcessResult:
    """Add a rolling reduce."""
    schema = graph.schema(port)
    result = add_process(
        graph,
        nodes.KeyedProcess,
        [port],
        RollingReduce(reducer_of(function), schema),
        schema=schema,
        on_error=on_error,
        uid=uid,
        kind="keyed",
        keys=(keys,),
    )
    if not forever:
        where = graph.nodes[-1].where
        warn_of_unbounded_reduce(result.uid, where, [(key, schema.field(key).type) for key in keys])
    return result


def check_on_error(chosen: Any, option: str = "on_error") -> None:
    """Refuse what is neither choice."""
    if chosen not in get_args(OnError):
        raise BuildError(f'{option}={chosen!r}: it must be "fail" or "dead_letter".')


def as_function(function: Any, kinds: tuple[type, ...], verb: str) -> Any:
    """The function, if it is an instance of one of these classes or, wrapped, a plain function of two arguments."""
    if isinstance(function, kinds):
        _check_methods(function, kinds)
        return function
    names = " or ".join(f"hr.{kind.__name__}" for kind in kinds)
    if isinstance(function, type) and issubclass(function, kinds):
        raise BuildError(f"{verb} takes an instance: {function.__name__}(), not the class.")
    if not inspect.isroutine(function) or not hasattr(kinds[0], "process_element"):
        raise BuildError(
            f"{verb} takes an instance of a class derived from {names}, not {_told(function, kinds[0])}."
        )
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise BuildError(
            f"{verb} calls a plain function with two arguments, the row and its context, but"
            f" {describe_callable(function)} takes {inspect.signature(function)}."
        ) from None
    return PlainFunction(function)


#: What the engine calls with two arguments: rows and timers, one or many, and the context.
_CALLED = (
    "process_element",
    "process_element1",
    "process_element2",
    "process_broadcast_element",
    "process_batch",
    "on_timer",
    "on_timers",
)


def _check_methods(function: Any, kinds: tuple[type, ...]) -> None:
    kind = next(kind for kind in kinds if isinstance(function, kind))
    # What other kinds call so is nothing to this one: an attribute may have that name.
    for name in (name for name in _CALLED if hasattr(kind, name)):
        method = getattr(function, name)
        where = f"{type(function).__name__}.{name}"
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise BuildError(
                f"{where} is a coroutine function, and nobody awaits it; ask other systems with map_async before."
            )
        try:
            inspect.signature(method).bind(None, None)
        except TypeError:
            what = "a timer" if name.startswith("on_") else "a row"
            raise BuildError(
                f"{where} is called with two arguments, {what} and the context, but takes"
                f" {inspect.signature(method)}; what it makes it yields."
            ) from None


def _told(function: Any, wanted: type) -> str:
    """What was given instead: a function of another kind by its kind, anything else as it shows itself."""
    kinds = [
        kind for kind in type(function).__mro__ if kind.__module__ == process_functions.__name__
    ]
    if not kinds:
        return repr(function)
    kind = kinds[0].__name__
    without_key = kind.startswith("Keyed") and not wanted.__name__.startswith("Keyed")
    hint = "; these rows have no key: call key_by(...) first" if without_key else ""
    return f"{type(function).__name__}, which is an hr.{kind}{hint}"


def _results(function: Any, schema: Any) -> pa.Schema:
    """The columns of results: as said, or as the first of its methods that says so."""
    if schema is not None:
        return as_schema(schema)
    if isinstance(function, KeyedBatchFunction):
        raise BuildError(
            f"The columns that {type(function).__name__} makes cannot be told; pass schema=."
        )
    methods = _makers(function)
    for method in methods:
        try:
            return result_schema(method, None, "process", many=True)
        except BuildError:
            if method is methods[-1]:
                raise
    raise AssertionError("a function has a method that makes rows")


def _makers(function: Any) -> list[Any]:
    if isinstance(function, PlainFunction):
        return [function.function]
    names = [name for name in _CALLED if callable(getattr(function, name, None))]
    found = [getattr(function, name) for name in names]
    annotated = [m for m in found if "return" in getattr(m, "__annotations__", {})]
    own = [m for m in annotated if m.__func__.__module__ != "headrace.process_functions"]
    return own or found[:1]
