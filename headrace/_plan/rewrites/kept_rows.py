"""`first()`, `last()` or `top()` before a join by the same key: the join keeps the one row itself.

That saves a stage, a shuffle and the state of the step before. It is right if nobody else takes its rows, if rows live
for ever in both, and if the join does not show rows without a partner, among which those without a key would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace._graph.join_nodes import KeepRow, RegularJoin
from headrace._graph.nodes import Node
from headrace._plan.rewrites.takers import only_taker

__all__ = ["fold_kept_rows"]


def fold_kept_rows(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, with joins that keep one row of each key of an input."""
    by_id = {node.id: node for node in nodes}
    for node in nodes:
        if type(node) is not KeepRow:
            continue
        join = only_taker(tuple(by_id.values()), node)
        if type(join) is RegularJoin and _fits(join, _side(join, node), node):
            by_id[join.id] = _folded(join, _side(join, node), node)
            del by_id[node.id]
    return tuple(by_id.values())


def _side(join: RegularJoin, kept: KeepRow) -> int:
    return next(side for side, port in enumerate(join.inputs) if port.node == kept.id)


def _fits(join: RegularJoin, side: int, kept: KeepRow) -> bool:
    return (
        set(join.keys[side]) == set(kept.keys[0])
        and join.keeps[side] is None
        and join.ttls_us[side] is None
        and kept.ttls_us[0] is None
        and not join.preserves(side)
    )


def _folded(join: RegularJoin, side: int, kept: KeepRow) -> RegularJoin:
    def with_own(values: tuple[Any, ...], own: Any) -> tuple[Any, ...]:
        return (*values[:side], own, *values[side + 1 :])

    return replace(
        join,
        inputs=with_own(join.inputs, kept.inputs[0]),
        input_schemas=with_own(join.input_schemas, kept.input_schemas[0]),
        changing=with_own(join.changing, kept.changing[0]),
        keeps=with_own(join.keeps, kept.keeps[0]),
    )
