"""One frozen dataclass per operation. A node is data: it names its inputs and its schema, and runs nothing.

Every output of a node is a `Port`. All nodes have `main`; a source and a keyed step also have `errors` (rows that could not be
used), and a window has `late`. These two arise before the shuffle unless a node says otherwise, all others behind it.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import pyarrow as pa

from headrace.aggregates import Aggregate
from headrace.config import Retry
from headrace.endpoints import Sink, Source
from headrace.evictors import Evictor
from headrace.expressions import Expression
from headrace.functions import ProcessWindowFunction
from headrace.state import StateSpec
from headrace.triggers import Trigger
from headrace.watermarks import WatermarkStrategy
from headrace.windows import Assigner, Count, LookBack, Session, Window

__all__ = [
    "ERRORS",
    "ERRORS_SCHEMA",
    "LATE",
    "LATE_RIGHT",
    "MAIN",
    "Accumulation",
    "AssignTimestamps",
    "CodeStep",
    "CountAggregate",
    "FilterBy",
    "FilterRows",
    "FlatMapRows",
    "KeyByFunction",
    "KeyedProcess",
    "LookBackAggregate",
    "MapAsync",
    "MapBatches",
    "MapRows",
    "Node",
    "OnError",
    "OnLate",
    "Port",
    "ProcessStep",
    "ReadSource",
    "Repartition",
    "RowProcess",
    "Select",
    "SessionAggregate",
    "Split",
    "Union",
    "WindowAggregate",
    "WindowProcess",
    "WindowStep",
    "WriteSink",
    "count_of",
]

MAIN = "main"
LATE = "late"
LATE_RIGHT = "late_right"  # of the second input of a join
ERRORS = "errors"

#: What a firing does with the results that went before it, see `WindowedStream`.
Accumulation: TypeAlias = Literal["accumulating", "discarding", "retracting"]
#: What a step does with a row on which the user's code fails.
OnError: TypeAlias = Literal["fail", "dead_letter"]
#: What happens to rows that are too late for all their windows.
OnLate: TypeAlias = Literal["side_output", "drop", "own_window"]

ERRORS_SCHEMA = pa.schema(
    [
        pa.field("uid", pa.string()),
        pa.field("cause", pa.string()),
        pa.field("traceback", pa.string()),
        pa.field("source", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("payload", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("raw_key", pa.binary()),
    ]
)


def count_of(output: str) -> str:
    """The count of the ledger under which the rows of an output stand."""
    own = {MAIN: "out", LATE: "late", LATE_RIGHT: "late_right", ERRORS: "dead"}
    return own.get(output, f"side:{output}")


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
    #: Late rows of a keyed step are told apart behind the shuffle, where the state is.
    late_behind: ClassVar[bool] = False
    #: Dead letters of a keyed step arise on both sides of the shuffle.
    errors_behind: ClassVar[bool] = False

    id: int
    uid: str
    inputs: tuple[Port, ...]
    schema: pa.Schema
    #: "file.py:12", the line of the user's call.
    where: str = ""

    @property
    def time_inputs(self) -> tuple[Port, ...]:
        """The inputs whose watermarks hold back its own."""
        return self.inputs

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
class AssignTimestamps(Node):
    """New timestamps and watermarks for rows in the middle of the graph."""

    verb = "assign_timestamps"
    strategy: WatermarkStrategy
    #: Rows come straight from source partitions, which are told apart; otherwise the step is one partition.
    by_partition: bool


@dataclass(frozen=True, kw_only=True)
class CodeStep(Node):
    """What all steps have that call a user's function for each row or batch."""

    on_error: OnError = "fail"
    #: How long one call may take.
    limit_us: int | None = None


@dataclass(frozen=True, kw_only=True)
class MapRows(CodeStep):
    """A Python function, row in, row out."""

    verb = "map"
    function: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class FlatMapRows(CodeStep):
    """A Python function, row in, any number of rows out."""

    verb = "flat_map"
    function: Callable[[Any], Iterable[Any]]


@dataclass(frozen=True, kw_only=True)
class FilterRows(CodeStep):
    """A Python predicate on rows."""

    verb = "filter"
    function: Callable[[Any], bool]


@dataclass(frozen=True, kw_only=True)
class MapBatches(CodeStep):
    """A Python function on Arrow record batches. A result of the same length keeps its timestamps."""

    verb = "map_batches"
    function: Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, kw_only=True)
class MapAsync(CodeStep):
    """A coroutine function, row in, row out; or, where it fails, a dead letter. `limit_us` is that of one attempt."""

    verb = "map_async"
    function: Callable[[Any], Awaitable[Any]]
    #: Results come in the order of their rows; otherwise in that in which they were ready.
    ordered: bool = True
    #: How many calls there may be at a time.
    capacity: int = 100
    retry: Retry | None = None
    on_timeout: OnError = "fail"


@dataclass(frozen=True, kw_only=True)
class Select(Node):
    """New columns from expressions, in order."""

    verb = "select"
    columns: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, kw_only=True)
class FilterBy(Node):
    """A condition as an expression; null counts as false. `taken`: the columns that somebody behind it looks at, if known."""

    verb = "filter"
    condition: Expression
    taken: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Union(Node):
    """All rows of several streams of one schema."""

    verb = "union"


@dataclass(frozen=True, kw_only=True)
class KeyByFunction(CodeStep):
    """Adds the column `key`, computed by a Python function on rows."""

    verb = "key_by"
    function: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Split(CodeStep):
    """Each row goes to the output of the first condition that is true of it, or else to `main`."""

    verb = "split"
    #: (name of the output, an expression or a function of a row)
    conditions: tuple[tuple[str, Expression | Callable[[Any], bool]], ...]


@dataclass(frozen=True, kw_only=True)
class Repartition(Node):
    """Rows move to other shards as they are, and leave nothing behind: it is keyed without state."""

    verb = "repartition"
    keyed = True
    #: Gives a key the number of a key group; without one, rows are dealt out evenly.
    partitioner: Callable[[Any, int], int] | None = None
    #: What it is given: the values of these columns, or what the function makes of a row.
    keys: tuple[str, ...] = ()
    function: Callable[[Any], Any] | None = None
    #: How long one call may take.
    limit_us: int | None = None


@dataclass(frozen=True, kw_only=True)
class WindowStep(Node):
    """What all windows have. Without keys there is one window for all rows of its time.

    The results of aggregates have the key columns, `window_start` and `window_end` if the windows have times, `pane`,
    `firing`, `change` if earlier results are withdrawn, then one column an aggregate.
    """

    verb = "window"
    keyed = True
    keys: tuple[str, ...]
    window: Assigner
    lateness_us: int = 0
    on_late: OnLate = "side_output"
    accumulation: Accumulation = "accumulating"
    aggregates: tuple[tuple[str, Aggregate], ...]
    input_schema: pa.Schema
    #: The input has a column `change`, and rows that withdraw others.
    weighted: bool = False

    def output_schema(self, output: str) -> pa.Schema:
        """Late rows keep the columns that they came with."""
        return self.input_schema if output == LATE else super().output_schema(output)


@dataclass(frozen=True, kw_only=True)
class WindowAggregate(WindowStep):
    """Aggregates per key and aligned window, folded by pane. Without a trigger they fire at the window's end."""

    window: Window
    trigger: Trigger | None = None


@dataclass(frozen=True, kw_only=True)
class SessionAggregate(WindowStep):
    """Aggregates per key and session."""

    late_behind = True
    window: Session


@dataclass(frozen=True, kw_only=True)
class LookBackAggregate(WindowStep):
    """For each row its columns and the aggregates over its look-back."""

    window: LookBack


@dataclass(frozen=True, kw_only=True)
class CountAggregate(WindowStep):
    """Aggregates over numbers of rows of a key."""

    window: Count


@dataclass(frozen=True, kw_only=True)
class WindowProcess(WindowStep):
    """Windows of any kind with any trigger, evictor and function, row by row.

    With aggregates and no function their results go out; with both, the function gets them; with a function
    alone it gets the rows, as an Arrow batch if `batches` is true.
    """

    late_behind = True
    trigger: Trigger | None = None
    evictor: Evictor | None = None
    function: ProcessWindowFunction | None = None
    batches: Callable[[pa.RecordBatch, Any], pa.RecordBatch] | None = None
    #: (name, columns) of side outputs
    side_outputs: tuple[tuple[str, pa.Schema], ...] = ()
    #: The function withdraws what it said before, by the column `change`.
    emits_changes: bool = False

    def output_schema(self, output: str) -> pa.Schema:
        """Side outputs have columns of their own."""
        return dict(self.side_outputs).get(output) or super().output_schema(output)


@dataclass(frozen=True, kw_only=True)
class ProcessStep(CodeStep):
    """What all steps with a process function have."""

    verb = "process"
    function: Any
    #: The columns of each input.
    input_schemas: tuple[pa.Schema, ...]
    #: (name, columns) of side outputs
    side_outputs: tuple[tuple[str, pa.Schema], ...] = ()

    def output_schema(self, output: str) -> pa.Schema:
        """Side outputs have columns of their own."""
        return dict(self.side_outputs).get(output) or super().output_schema(output)


@dataclass(frozen=True, kw_only=True)
class RowProcess(ProcessStep):
    """A `ProcessFunction` or `CoProcessFunction`: no keys, no state."""


@dataclass(frozen=True, kw_only=True)
class KeyedProcess(ProcessStep):
    """A function with state and timers for each key."""

    keyed = True
    late_behind = True
    errors_behind = True
    kind: Literal["keyed", "co", "broadcast", "batch"]
    #: The key columns of each input. A broadcast input has none; without keys on the first, its rows are dealt to
    #: the shards.
    keys: tuple[tuple[str, ...], ...]
    states: tuple[StateSpec, ...] = ()
    #: Rows wait for the watermark and come in the order of their time.
    ordered: bool = False

    @property
    def time_inputs(self) -> tuple[Port, ...]:
        """Rules that seldom come must not hold back time."""
        return self.inputs[:1] if self.kind == "broadcast" else self.inputs

    def output_schema(self, output: str) -> pa.Schema:
        """Late rows keep the columns that they came with; of two inputs, those of the other are null."""
        return _joined(self.input_schemas) if output == LATE else super().output_schema(output)


@dataclass(frozen=True, kw_only=True)
class WriteSink(Node):
    """The end of a stream."""

    verb = "sink"
    sink: Sink


def _joined(schemas: tuple[pa.Schema, ...]) -> pa.Schema:
    """The columns of all, each once."""
    if len(schemas) == 1:
        return schemas[0]
    columns = {field.name: field.with_nullable(True) for schema in schemas for field in schema}
    return pa.schema(columns.values())
