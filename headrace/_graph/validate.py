"""Checks that need more than one node: event time upstream of a window, and the graph as a whole."""

from collections.abc import Sequence

import pyarrow as pa

from headrace._graph.graph import timed_ports
from headrace._graph.nodes import ERRORS, MAIN, Node, Port, ReadSource, WriteSink
from headrace.errors import BuildError, SchemaError

__all__ = [
    "check_columns",
    "dangling",
    "errors_port",
    "require_event_time",
    "require_runnable",
    "schema_differences",
]


def require_event_time(nodes: Sequence[Node], port: Port, what: str) -> None:
    """Every row that reaches the port must have a timestamp and a watermark behind it."""
    ports = timed_ports(nodes, [port])
    for reached in ports:
        if reached.output == ERRORS:
            raise BuildError(
                f"{what} needs event time, but rows of the errors output of"
                f" '{nodes[reached.node].uid}' have none: they are what could not be used. Send them"
                " to a sink."
            )
    timeless = [
        f"'{node.uid}' ({node.where})"
        for node in nodes
        if isinstance(node, ReadSource) and node.strategy is None and Port(node.id) in ports
    ]
    if timeless:
        raise BuildError(
            f"{what} needs event time, but {_sources(timeless)} no watermark strategy; write"
            " from_source(..., watermarks=WatermarkStrategy.bounded_out_of_orderness(timedelta(...))"
            '.with_timestamps("<column>")), or monotonous() if rows come in order; or give the rows a time'
            " with assign_timestamps_and_watermarks(...)."
        )


def errors_port(nodes: Sequence[Node], port: Port) -> Port:
    """The output for rows on which the code of the step of this port failed; refused if it has none."""
    node = nodes[port.node]
    if port.output != MAIN:
        raise BuildError(
            f"The output '{port.output}' of '{node.uid}' has no errors of its own; take those of the step's result."
        )
    if not hasattr(node, "on_error"):
        raise BuildError(
            f"The {node.verb} '{node.uid}' has no errors output: it calls no code that could fail on a row."
        )
    if node.on_error == "fail":
        raise BuildError(
            f"The {node.verb} '{node.uid}' has no errors output: what fails in it fails the job. Write"
            f' {node.verb}(..., on_error="dead_letter") to have such rows here.'
        )
    return Port(node.id, ERRORS)


def require_runnable(nodes: Sequence[Node], job: str) -> None:
    """Refuse a graph in which nothing would happen."""
    if not any(isinstance(node, ReadSource) for node in nodes):
        raise BuildError(f"The job '{job}' has no source; begin with env.from_source(...).")
    if not any(isinstance(node, WriteSink) for node in nodes):
        ends = ", ".join(f"'{node.uid}' ({node.where})" for node in dangling(nodes))
        raise BuildError(
            f"The job '{job}' has no sink, so nothing would come of it; call sink_to(...) on the"
            f" results. Streams that end: {ends}."
        )


def dangling(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The last steps of branches that end in no sink."""
    taken = {port.node for node in nodes for port in node.inputs}
    return tuple(n for n in nodes if n.id not in taken and not isinstance(n, WriteSink))


def check_columns(schema: pa.Schema, what: str) -> pa.Schema:
    """The schema, if rows can have it: at least one column, names that differ and are not ours."""
    if not schema.names:
        raise SchemaError(f"{what} has no columns; a row needs at least one.")
    repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if repeated:
        raise SchemaError(f"{what} has more than one column named {_quoted(repeated)}.")
    reserved = [name for name in schema.names if name.startswith("__")]
    if reserved:
        raise SchemaError(
            f"{what}: names that begin with '__' belong to the engine; rename {_quoted(reserved)}."
        )
    return schema


def schema_differences(left: pa.Schema, right: pa.Schema) -> list[str]:
    """What keeps rows of one schema from being rows of the other, as parts of a sentence."""
    found = [f"'{name}' is only in the first" for name in left.names if name not in right.names]
    found += [f"'{name}' is only in the second" for name in right.names if name not in left.names]
    for field in left:
        if field.name in right.names and not right.field(field.name).type.equals(field.type):
            other = right.field(field.name).type
            found.append(f"'{field.name}' is {field.type} in the first and {other} in the second")
    if not found and left.names != right.names:
        found.append(f"the order is ({', '.join(left.names)}) and ({', '.join(right.names)})")
    return found


def _sources(names: list[str]) -> str:
    if len(names) == 1:
        return f"the source {names[0]} has"
    return f"the sources {', '.join(names)} have"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
