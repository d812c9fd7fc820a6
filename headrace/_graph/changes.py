"""Which streams carry changes: rows that withdraw earlier ones, told apart by the column `change`."""

from collections.abc import Sequence

from headrace._graph.join_nodes import JoinStep
from headrace._graph.nodes import ERRORS, MAIN, Node, Port, ProcessStep, ReadSource, WindowStep

__all__ = ["CHANGE", "carries_changes"]

#: "+I" a new row, "-U" an earlier one is withdrawn, "+U" the one that replaces it, "-D" one is deleted.
CHANGE = "change"


def carries_changes(nodes: Sequence[Node], port: Port) -> bool:
    """Whether rows of this port may withdraw others."""
    node = nodes[port.node]
    if port.output == ERRORS:
        return False
    if isinstance(node, JoinStep) and port.output == MAIN:
        return node.emits_changes
    if isinstance(node, WindowStep) and port.output == MAIN:
        return node.accumulation == "retracting" or getattr(node, "emits_changes", False)
    if isinstance(node, ReadSource):
        return node.source.carries_changes
    if isinstance(node, ProcessStep) and CHANGE not in node.output_schema(port.output).names:
        # The code sees the column and makes of it what it likes.
        return False
    return any(carries_changes(nodes, above) for above in node.inputs)
