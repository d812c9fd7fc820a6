"""What each target can run: the one place that says so, in code and in the documentation.

A target is a way to run a plan. A new node class must be given a line here (a test insists); a target that
lacks an operation says so with `PLANNED` or `NEVER`, and a job that uses it is refused before it starts.
`python -m headrace._plan.capabilities` prints the page `docs/reference/support.md`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headrace._graph import join_nodes, nodes
from headrace._graph.nodes import Node
from headrace.errors import BuildError

__all__ = ["OPERATIONS", "TARGETS", "Operation", "Support", "Target", "check_supported", "page"]

Target: TypeAlias = Literal["spark", "local"]
Support: TypeAlias = Literal["yes", "planned", "never"]

#: The targets and what they are.
TARGETS: dict[Target, str] = {
    "spark": "embedded Spark, durable and exactly once",
    "local": "this process, no JVM, for tests",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a job can do, the node that stands for it, and who can run it."""

    name: str
    node: type[Node]
    about: str
    spark: Support = "yes"
    local: Support = "yes"


OPERATIONS = (
    Operation("from_source", nodes.ReadSource, "rows with event time, replayable"),
    Operation("map", nodes.MapRows, "Python function, row by row"),
    Operation("flat_map", nodes.FlatMapRows, "Python function, any number of rows"),
    Operation("filter (function)", nodes.FilterRows, "Python predicate"),
    Operation("filter (expression)", nodes.FilterBy, "on Arrow columns"),
    Operation(
        "map_async",
        nodes.MapAsync,
        "coroutine function, many rows at a time; time-outs, attempts, dead letters",
    ),
    Operation("map_batches", nodes.MapBatches, "Python function on Arrow batches"),
    Operation("select", nodes.Select, "expressions on Arrow columns"),
    Operation("union", nodes.Union, "streams with the same columns"),
    Operation("split", nodes.Split, "each row to the first of several conditions that is true"),
    Operation(
        "rebalance, partition_custom",
        nodes.Repartition,
        "rows move to other shards, evenly or as a function says; no state",
    ),
    Operation(
        "assign_timestamps_and_watermarks",
        nodes.AssignTimestamps,
        "new event time in the middle of a graph; no generator, no alignment there",
    ),
    Operation("key_by (function)", nodes.KeyByFunction, "adds the column `key`"),
    Operation(
        "window(Tumbling, Hopping, Cumulating)",
        nodes.WindowAggregate,
        "aggregates folded by pane; offset, time zone, event and processing time, lateness",
    ),
    Operation(
        "window(Session)",
        nodes.SessionAggregate,
        "aggregates by session; a fixed gap or one of each row, merged across epochs, lateness",
    ),
    Operation(
        "window(LookBack)",
        nodes.LookBackAggregate,
        "each row beside aggregates over the rows of its key shortly before it",
    ),
    Operation(
        "window(Count)",
        nodes.CountAggregate,
        "aggregates over numbers of rows, tumbling and sliding",
    ),
    Operation(
        "window(...) with any trigger, evictor, function",
        nodes.WindowProcess,
        "row by row: all windows, global and user-written too; process, process_batches, retracting",
    ),
    Operation(
        "process",
        nodes.RowProcess,
        "a ProcessFunction or CoProcessFunction: any number of rows to any number of outputs",
    ),
    Operation(
        "key_by(...).process",
        nodes.KeyedProcess,
        "state, timers and side outputs for each key; row by row or on columns; two inputs, broadcast",
    ),
    Operation(
        "window_join",
        join_nodes.WindowJoin,
        "pairs of an aligned window: inner, left, right, full, semi, anti; lateness. Other windows, and co_group: by row",
    ),
    Operation(
        "window_join with its own max or min",
        join_nodes.WindowExtreme,
        "the rows that have the extreme of their window: picked by the planner for a semi join",
    ),
    Operation(
        "interval_join",
        join_nodes.IntervalJoin,
        "pairs near each other in time: inner, left, right, full; state goes with the watermark",
    ),
    Operation(
        "join_versioned, join_asof",
        join_nodes.AsOfJoin,
        "the version at a row's time; nearest earlier, nearest later, nearest, within a tolerance: inner, left",
    ),
    Operation(
        "join",
        join_nodes.RegularJoin,
        "all pairs of two or more streams, as changes: inner, left, right, full, semi, anti; TTL",
    ),
    Operation(
        "first, last, top",
        join_nodes.KeepRow,
        "one row of each key, folded into a join behind it where that is all it is for",
    ),
    Operation(
        "join(...).key_by(...).top",
        join_nodes.TopPairJoin,
        "the best pair of each key, where one input is a first(): picked by the planner",
    ),
    Operation(
        "join(table.broadcast())",
        join_nodes.BroadcastJoin,
        "each row beside a small table that changes and that every shard has: inner, left",
    ),
    Operation(
        "join_lookup",
        join_nodes.LookupJoin,
        "each row beside a table outside, one call for the distinct keys of a batch: inner, left",
    ),
    Operation("sink_to", nodes.WriteSink, "staged per epoch, then published"),
)


def check_supported(graph: Iterable[Node], target: Target) -> None:
    """Refuse a graph with a step that the target cannot run."""
    support = {operation.node: getattr(operation, target) for operation in OPERATIONS}
    for node in graph:
        if support[type(node)] != "yes":
            able = [t for t in TARGETS for o in OPERATIONS if o.node is type(node) and _can(o, t)]
            raise BuildError(
                f"The {node.verb} '{node.uid}' ({node.where}) cannot run on '{target}'"
                f" ({support[type(node)]}); it can on: {', '.join(able) or 'nothing yet'}."
            )


def page() -> str:
    """The support table as a page of the documentation."""
    targets = list(TARGETS)
    lines = [
        "# What runs where",
        "",
        "Generated by `python -m headrace._plan.capabilities`; a test compares it with the code.",
        "",
        *(f"- **{target}**: {about}" for target, about in TARGETS.items()),
        "",
        f"| operation | {' | '.join(targets)} | |",
        f"|---|{'---|' * len(targets)}---|",
    ]
    for operation in OPERATIONS:
        marks = " | ".join(str(getattr(operation, target)) for target in targets)
        lines.append(f"| `{operation.name}` | {marks} | {operation.about} |")
    return "\n".join(lines) + "\n"


def _can(operation: Operation, target: Target) -> bool:
    return bool(getattr(operation, target) == "yes")


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
