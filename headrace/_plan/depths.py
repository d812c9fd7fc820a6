"""In which stages rows arise, and hence where each step runs.

Stage 0 reads. The outputs of a keyed step arise in its own stage, one behind the last stage in which its
input arises; but dead letters, and most often late rows, are told apart before the shuffle, so they arise
wherever its input does. A stateless step runs in every stage in which rows reach it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace._graph.graph import timekeepers
from headrace._graph.join_nodes import LookupJoin
from headrace._graph.nodes import (
    ERRORS,
    LATE,
    LATE_RIGHT,
    AssignTimestamps,
    Node,
    Port,
    RowProcess,
    WindowStep,
)
from headrace.watermarks import CLOCK

__all__ = ["Depths", "measure"]


@dataclass(frozen=True)
class Depths:
    """The stages of every step of a graph."""

    #: The stages in which a step takes rows in; for a keyed step, those of its feeders.
    entered: Mapping[int, frozenset[int]]
    #: The stage that hosts a keyed step.
    stage_of: Mapping[int, int]
    #: What a keyed step goes by: uids of sources and of steps that assign timestamps, or the clock. Such a
    #: step has them too: it is at the end of time when they are. So has a process function, which may ask, and a step that counts.
    feeds: Mapping[int, tuple[str, ...]]
    #: Keyed steps that tell late rows apart behind the shuffle.
    late_behind: Collection[int]
    #: Keyed steps whose dead letters arise on both sides of it.
    errors_behind: Collection[int]

    def arises(self, port: Port) -> frozenset[int]:
        """The stages in which rows of a port come into being."""
        here = self.stage_of.get(port.node)
        if here is None:
            return self.entered[port.node]
        if port.output == ERRORS:
            behind = {here} if port.node in self.errors_behind else ()
            return self.entered[port.node].union(behind)
        if port.output in (LATE, LATE_RIGHT) and port.node not in self.late_behind:
            return self.entered[port.node]
        return frozenset({here})


def measure(nodes: Iterable[Node]) -> Depths:
    """The depths of a graph whose nodes are in topological order."""
    nodes = tuple(nodes)
    entered: dict[int, frozenset[int]] = {}
    stage_of: dict[int, int] = {}
    feeds: dict[int, tuple[str, ...]] = {}
    late_behind = {node.id for node in nodes if node.late_behind}
    errors_behind = {node.id for node in nodes if node.errors_behind}
    depths = Depths(entered, stage_of, feeds, late_behind, errors_behind)
    for node in nodes:
        reached = [depths.arises(port) for port in node.inputs]
        entered[node.id] = frozenset[int]().union(*reached) if reached else frozenset({0})
        if node.keyed:
            stage_of[node.id] = 1 + max(entered[node.id])
            feeds[node.id] = _feeds(nodes, node)
        elif isinstance(node, AssignTimestamps | RowProcess | LookupJoin):
            feeds[node.id] = timekeepers(nodes, node.inputs)
    return depths


def _feeds(nodes: Sequence[Node], node: Node) -> tuple[str, ...]:
    if isinstance(node, WindowStep) and node.window.time == "processing":
        return (CLOCK,)
    return timekeepers(nodes, node.time_inputs)
