"""One frozen dataclass per operation. A node is data: it names its inputs and its schema, and runs nothing.

Every output of a node is a `Port`. All nodes have the output `main`; a source and a keyed step also have
`errors` (rows that could not be used), and a window has `late`. Rows on `late` and `errors` of a keyed step
arise where its input arises, before the shuffle; only `main` comes out behind it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from headrace.aggregates import Aggregate
from headrace.endpoints import Sink, Source
from headrace.expressions import Expression
from headrace.watermarks import WatermarkStrategy
from headrace.windows import Window

__all__ = [
    "ERRORS",
    "ERRORS_SCHEMA",
    "LATE",
    "MAIN",
    "FilterBy",
    "FilterRows",
    "FlatMapRows",
    "KeyByFunction",
    "MapBatches",
    "MapRows",
    "Node",
    "Port",
    "ReadSource",
    "Select",
    "Union",
    "WindowAggregate",
    "WriteSink",
]

MAIN = "main"
LATE = "late"
ERRORS = "errors"

ERRORS_SCHEMA = pa.schema(
    [
        pa.field("uid", pa.string()),
        pa.field("cause", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("payload", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Port:
    """One output of one node."""

    node: int
    output: str = MAIN


@dataclass(frozen=True, kw_only=True)
class Node:
    """What all operations have: a number in the graph, a stable uid, inputs, and the schema of `main`."""

    #: Read by explain() and by error messages.
    verb: ClassVar[str] = ""
    #: The step needs all rows of a key together, hence a shuffle before it.
    keyed: ClassVar[bool] = False

    id: int
    uid: str
    inputs: tuple[Port, ...]
    schema: pa.Schema
    #: "file.py:12", the line of the user's call.
    where: str = ""

    def output_schema(self, output: str) -> pa.Schema:
        """The columns of one output."""
        return ERRORS_SCHEMA if output == ERRORS else self.schema


@dataclass(frozen=True, kw_only=True)
class ReadSource(Node):
    """Rows from outside, with their timestamps."""

    verb = "source"
    source: Source
    strategy: WatermarkStrategy | None


@dataclass(frozen=True, kw_only=True)
class MapRows(Node):
    """A Python function, row in, row out."""

    verb = "map"
    function: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class FlatMapRows(Node):
    """A Python function, row in, any number of rows out."""

    verb = "flat_map"
    function: Callable[[Any], Iterable[Any]]


@dataclass(frozen=True, kw_only=True)
class FilterRows(Node):
    """A Python predicate on rows."""

    verb = "filter"
    function: Callable[[Any], bool]


@dataclass(frozen=True, kw_only=True)
class MapBatches(Node):
    """A Python function on Arrow record batches. A result of the same length keeps its timestamps."""

    verb = "map_batches"
    function: Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, kw_only=True)
class Select(Node):
    """New columns from expressions, in order."""

    verb = "select"
    columns: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, kw_only=True)
class FilterBy(Node):
    """A condition as an expression; null counts as false."""

    verb = "filter"
    condition: Expression


@dataclass(frozen=True, kw_only=True)
class Union(Node):
    """All rows of several streams of one schema."""

    verb = "union"


@dataclass(frozen=True, kw_only=True)
class KeyByFunction(Node):
    """Adds the column `key`, computed by a Python function on rows."""

    verb = "key_by"
    function: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class WindowAggregate(Node):
    """Aggregates per key and event-time window.

    `schema` is: the key columns, `window_start`, `window_end`, `firing`, then one column an aggregate.
    """

    verb = "window"
    keyed = True
    keys: tuple[str, ...]
    window: Window
    lateness_us: int
    aggregates: tuple[tuple[str, Aggregate], ...]
    input_schema: pa.Schema

    def output_schema(self, output: str) -> pa.Schema:
        """Late rows keep the columns that they came with."""
        return self.input_schema if output == LATE else super().output_schema(output)


@dataclass(frozen=True, kw_only=True)
class WriteSink(Node):
    """The end of a stream."""

    verb = "sink"
    sink: Sink
