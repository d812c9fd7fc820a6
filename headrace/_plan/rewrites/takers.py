"""Who takes the rows of a step: what a rule must know before it takes the step away."""

from __future__ import annotations

from collections.abc import Sequence

from headrace._graph.nodes import MAIN, Node

__all__ = ["only_taker"]


def only_taker(nodes: Sequence[Node], node: Node) -> Node | None:
    """The one step that takes the rows of another, if it takes nothing but results, and those once."""
    taken = [(n, port) for n in nodes for port in n.inputs if port.node == node.id]
    if len(taken) != 1 or taken[0][1].output != MAIN:
        return None
    return taken[0][0]
