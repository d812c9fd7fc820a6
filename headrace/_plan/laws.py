"""Which law of the ledger each step obeys, and between which counts rows travel."""

from __future__ import annotations

from headrace._commit.ledger import Law
from headrace._graph.join_nodes import LookupJoin
from headrace._graph.nodes import (
    FlatMapRows,
    MapBatches,
    Node,
    Repartition,
    RowProcess,
    count_of,
)
from headrace._graph.plan import Plan

__all__ = ["edges_of", "laws_of"]


def laws_of(plan: Plan) -> dict[str, Law]:
    """uid -> law."""
    return {node.uid: _law(node) for node in plan.nodes.values()}


def edges_of(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    """uid of a step -> (uid, count) of everything that it takes its rows from."""
    return {
        node.uid: [(plan.nodes[port.node].uid, count_of(port.output)) for port in node.inputs]
        for node in plan.nodes.values()
        if node.inputs
    }


def _law(node: Node) -> Law:
    if isinstance(node, Repartition):
        return "moved"
    if node.keyed:
        return "keyed"
    if isinstance(node, LookupJoin):
        return "many" if node.many else "one"
    return "many" if isinstance(node, FlatMapRows | MapBatches | RowProcess) else "one"
