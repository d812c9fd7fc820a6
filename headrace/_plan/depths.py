"""In which stages rows arise, and hence where each step runs.

Stage 0 reads. The main output of a keyed step arises in its own stage, one behind the last stage in which
its input arises. Its other outputs are told apart before the shuffle, so they arise wherever its input
does. A stateless step runs in every stage in which rows reach it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace._graph.graph import sources_of
from headrace._graph.nodes import MAIN, Node, Port

__all__ = ["Depths", "measure"]


@dataclass(frozen=True)
class Depths:
    """The stages of every step of a graph."""

    #: The stages in which a step takes rows in; for a keyed step, those of its feeders.
    entered: Mapping[int, frozenset[int]]
    #: The stage that hosts a keyed step.
    stage_of: Mapping[int, int]
    #: The uids of the sources whose rows reach a keyed step.
    feeds: Mapping[int, tuple[str, ...]]

    def arises(self, port: Port) -> frozenset[int]:
        """The stages in which rows of a port come into being."""
        if port.output == MAIN and port.node in self.stage_of:
            return frozenset({self.stage_of[port.node]})
        return self.entered[port.node]


def measure(nodes: Iterable[Node]) -> Depths:
    """The depths of a graph whose nodes are in topological order."""
    nodes = tuple(nodes)
    entered: dict[int, frozenset[int]] = {}
    stage_of: dict[int, int] = {}
    feeds: dict[int, tuple[str, ...]] = {}
    depths = Depths(entered, stage_of, feeds)
    for node in nodes:
        reached = [depths.arises(port) for port in node.inputs]
        entered[node.id] = frozenset[int]().union(*reached) if reached else frozenset({0})
        if node.keyed:
            stage_of[node.id] = 1 + max(entered[node.id])
            feeds[node.id] = tuple(source.uid for source in sources_of(nodes, node.inputs))
    return depths
