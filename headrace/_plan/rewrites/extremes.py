"""A semi join of a stream with its own greatest (or least) value of each window: only rows that have it are kept.

    highest = bids.window_all(ten_seconds).aggregate(price=hr.max("price"))
    bids.window_join(highest, ten_seconds, on="price", how="semi")

Run as written all rows of a window wait until it is over. But a row that is beaten by another can never come out, so
nobody need send or keep it. It is right for tumbling windows of whole numbers and times, which have no NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import pyarrow as pa
import pyarrow.types as pt

from headrace._graph.join_nodes import WindowExtreme, WindowJoin
from headrace._graph.nodes import Node, WindowAggregate
from headrace._plan.rewrites.takers import only_taker

__all__ = ["fold_extremes"]


def fold_extremes(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, with semi joins that look at their own rows alone."""
    by_id = {node.id: node for node in nodes}
    for node in nodes:
        if type(node) is not WindowAggregate:
            continue
        join = only_taker(tuple(by_id.values()), node)
        if type(join) is WindowJoin and _is_plain(node) and _asks_itself(join, node):
            by_id[join.id] = _folded(join, node)
            del by_id[node.id]
    return tuple(by_id.values())


def _is_plain(node: WindowAggregate) -> bool:
    (_, aggregate), *more = node.aggregates
    return (
        not more
        and aggregate.kind in ("max", "min")
        and aggregate.column is not None
        and _is_whole(node.input_schema.field(aggregate.column).type)
        and node.trigger is None
        and node.accumulation == "accumulating"
        and node.on_late != "own_window"
        and not node.weighted
    )


def _asks_itself(join: WindowJoin, node: WindowAggregate) -> bool:
    name, aggregate = node.aggregates[0]
    paired = dict(zip(join.keys[1], join.keys[0], strict=True))
    wanted = {**{key: key for key in node.keys}, name: aggregate.column}
    return (
        join.how == "semi"
        and join.inputs == (node.inputs[0], join.inputs[1])
        and join.inputs[1].node == node.id
        and join.window == node.window
        and node.window.panes == 1
        and node.window.time == "event"
        and join.lateness_us == node.lateness_us == 0
        and paired == wanted
    )


def _folded(join: WindowJoin, node: WindowAggregate) -> WindowExtreme:
    kept = {field.name: getattr(join, field.name) for field in fields(WindowJoin)}
    aggregate = node.aggregates[0][1]
    own = {
        "inputs": join.inputs[:1],
        "keys": (node.keys,),
        "input_schemas": join.input_schemas[:1],
        "column": aggregate.column,
        "greatest": aggregate.kind == "max",
    }
    return WindowExtreme(**{**kept, **own})


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pt.is_signed_integer(kind) or pt.is_timestamp(kind) or pt.is_date32(kind))
