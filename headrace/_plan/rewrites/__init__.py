"""Rules that make a graph cheaper and leave its results as they are; one rule a file, applied in this order.

A rule takes all nodes that reach a sink and returns them, some changed, some gone. It may use what it can prove from the
graph alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace._graph.nodes import Node
from headrace._plan.rewrites.extremes import fold_extremes
from headrace._plan.rewrites.kept_rows import fold_kept_rows
from headrace._plan.rewrites.top_pairs import fold_top_pairs

__all__ = ["rewritten"]

_RULES = (fold_kept_rows, fold_top_pairs, fold_extremes)


def rewritten(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes that run."""
    nodes = tuple(nodes)
    for rule in _RULES:
        nodes = rule(nodes)
    return nodes
