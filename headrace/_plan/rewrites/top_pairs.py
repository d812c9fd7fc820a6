"""`top()` behind an inner join of which one input has one row of each key: only the best partner is kept.

It is right if rows are ranked by key of the join: then all pairs of a key are rivals, and a pair that lost once can never
win, because the one row stays and the others are never withdrawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from headrace._graph.join_nodes import KeepRow, RegularJoin, TopPairJoin
from headrace._graph.nodes import Node
from headrace._plan.rewrites.takers import only_taker

__all__ = ["fold_top_pairs"]


def fold_top_pairs(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, with joins that keep the best pair of each key."""
    by_id = {node.id: node for node in nodes}
    for node in nodes:
        if type(node) is not RegularJoin or not _has_one_row(node):
            continue
        top = only_taker(tuple(by_id.values()), node)
        if type(top) is KeepRow and _ranks_pairs(top, node):
            by_id[top.id] = _folded(node, top)
            del by_id[node.id]
    return tuple(by_id.values())


def _has_one_row(join: RegularJoin) -> bool:
    rules = sorted("" if keep is None else keep.rule for keep in join.keeps)
    lives = all(ttl is None for ttl in join.ttls_us)
    return join.how == "inner" and rules == ["", "first"] and lives and not any(join.changing)


def _ranks_pairs(top: KeepRow, join: RegularJoin) -> bool:
    """Whether it ranks all pairs of a key of the join: by that key, and by what the one row says besides."""
    keep = top.keeps[0]
    if keep is None or keep.rule != "top" or top.ttls_us[0] is not None:
        return False
    origins = {column.name: column.origins for column in join.columns}
    one = 0 if join.keeps[0] is not None else 1
    covered = set()
    for name in top.keys[0]:
        places = [
            join.keys[side].index(key) for side, key in origins[name] if key in join.keys[side]
        ]
        covered.update(places)
        if not places and origins[name][0][0] != one:
            return False
    return len(covered) == len(join.keys[0])


def _folded(join: RegularJoin, top: KeepRow) -> TopPairJoin:
    kept = {field.name: getattr(join, field.name) for field in fields(RegularJoin)}
    keep = top.keeps[0]
    assert keep is not None
    # It is the step whose results are seen: its name, its place, its columns.
    own = {"id": top.id, "uid": top.uid, "where": top.where, "schema": top.schema}
    return TopPairJoin(**{**kept, **own}, top=keep, rivals_by=top.keys[0])
