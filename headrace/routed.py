"""Streams that go several ways: by conditions, and to shards that a function names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace._graph.callables import check_row_function, describe_callable
from headrace._graph.graph import Graph
from headrace._graph.nodes import Port, Split
from headrace._plan.columns import check_condition
from headrace.errors import BuildError
from headrace.expressions import Expression
from headrace.outputs import OutputTag
from headrace.schema import describe_fields, require_field
from headrace.stream import Stream

__all__ = ["SplitStreams", "checked_conditions", "partition_fields"]

Condition = Expression | Callable[[Any], bool]

_REST = "rest"


class SplitStreams:
    """The streams of a `split`, by name: `parts.big` or `parts["big"]`."""

    def __init__(self, graph: Graph, port: Port) -> None:
        self._graph = graph
        self._port = port

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the conditions, in their order."""
        node = self._graph.nodes[self._port.node]
        assert isinstance(node, Split)
        return tuple(name for name, _ in node.conditions)

    @property
    def rest(self) -> Stream:
        """Rows of which no condition was true."""
        return Stream(self._graph, self._port)

    @property
    def errors(self) -> Stream:
        """Dead letters: with `on_error="dead_letter"`, the rows on which a condition failed."""
        return self.rest.errors

    def __getitem__(self, name: str) -> Stream:
        if name == _REST:
            return self.rest
        if name not in self.names:
            raise BuildError(
                f"The split '{self.rest.uid}' has no stream {name!r}; it has {', '.join(self.names)} and {_REST}."
            )
        return Stream(self._graph, Port(self._port.node, name))

    def __getattr__(self, name: str) -> Stream:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __repr__(self) -> str:
        return f"SplitStreams('{self.rest.uid}': {', '.join((*self.names, _REST))})"


def checked_conditions(
    conditions: Mapping[str, Condition], schema: pa.Schema
) -> tuple[tuple[str, Condition], ...]:
    """The conditions of a split, in order."""
    if not conditions:
        raise BuildError(
            'split needs conditions: split(big=hr.col("price") > 100, small=lambda row: row.price < 10).'
            f" The fields are {describe_fields(schema)}."
        )
    for name, condition in conditions.items():
        if name in (_REST, "names"):
            raise BuildError(f"split({name}=...): that name is taken, choose another.")
        OutputTag(name, schema)
        check_condition(condition, schema, f"split({name}=...)")
    return tuple(conditions.items())


def partition_fields(partitioner: Any, key: Any, schema: pa.Schema) -> dict[str, Any]:
    """What a `partition_custom` has, checked."""
    if not callable(partitioner):
        raise BuildError(
            f"partition_custom takes a function of a key and the number of partitions, not {partitioner!r}."
        )
    try:
        inspect.signature(partitioner).bind(None, 1)
    except TypeError:
        raise BuildError(
            "partition_custom calls its function with two arguments, the key and the number of partitions, but"
            f" {describe_callable(partitioner)} takes {inspect.signature(partitioner)}."
        ) from None
    except ValueError:
        pass  # a builtin that does not say its parameters
    if callable(key):
        check_row_function(key, "partition_custom", schema)
        return {"partitioner": partitioner, "function": key}
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, Sequence) or not names:
        raise BuildError(
            f"partition_custom needs the name of a column, several, or a function of a row, not {key!r}."
        )
    for name in names:
        require_field(schema, name, what="partition_custom")
    return {"partitioner": partitioner, "keys": tuple(names)}
