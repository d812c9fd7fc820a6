"""Which columns anybody looks at, so that a source need not make the others, nor a filter keep them.

A column is looked at unless every way from the source leads through steps that say which columns they use: filters and
selections by expressions, aggregates over windows, look-ups by key. User code, sinks and dead letters see whole rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headrace._graph.join_nodes import LookupJoin
from headrace._graph.nodes import (
    ERRORS,
    LATE,
    FilterBy,
    Node,
    Port,
    ReadSource,
    Select,
    WindowAggregate,
)
from headrace._runtime.expressions import columns_in
from headrace.expressions import Expression
from headrace.watermarks import WatermarkStrategy

__all__ = ["narrowed"]

#: Names of columns; None: all of them.
_Names = frozenset[str] | None
_Takers = Mapping[Port, Sequence[Node]]


def narrowed(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, with sources and filters that know what is asked of them."""
    takers: dict[Port, list[Node]] = {}
    for node in nodes:
        for port in node.inputs:
            takers.setdefault(port, []).append(node)
    return tuple(_told(node, takers) for node in nodes)


def _told(node: Node, takers: _Takers) -> Node:
    if isinstance(node, ReadSource):
        return _asked(node, takers)
    if isinstance(node, FilterBy):
        return replace(node, taken=_taken(node, takers))
    return node


def _asked(node: ReadSource, takers: _Takers) -> ReadSource:
    names = _all_of([_timing(node.strategy), _whole(node, [ERRORS], takers), _taken(node, takers)])
    timestamps = node.strategy is not None and node.strategy.record_timestamps
    columns = [name for name in node.schema.names if names is None or name in names]
    return replace(node, source=node.source.narrowed(columns, timestamps=timestamps))


def _taken(node: Node, takers: _Takers) -> _Names:
    """What those who take the rows of a step look at."""
    return _all_of(_used(taker, takers) for taker in takers.get(Port(node.id), ()))


def _used(node: Node, takers: _Takers) -> _Names:
    if isinstance(node, FilterBy):
        return _all_of([columns_in(node.condition), _taken(node, takers)])
    if isinstance(node, Select):
        return _all_of(columns_in(expression) for _, expression in node.columns)
    if isinstance(node, WindowAggregate):
        return _all_of([_aggregated(node), _whole(node, [LATE, ERRORS], takers)])
    if isinstance(node, LookupJoin):
        parts = [_beside(node, _taken(node, takers)), _whole(node, [ERRORS], takers)]
        return _all_of([frozenset(node.keys), *parts])
    return None


def _beside(node: LookupJoin, names: _Names) -> _Names:
    """Of columns of the result those that are the stream's own."""
    own = {column.name for column in node.columns if column.origins[0][0] == 0}
    return None if names is None else names & own


def _aggregated(node: WindowAggregate) -> _Names:
    # Not before it is asked for: they load a lot, and building a job should not.
    from headrace._runtime.windows.folding import columns_read
    from headrace._runtime.windows.panes.layout import Layout

    return frozenset(columns_read(node, Layout.of(node).folds))


def _whole(node: Node, outputs: Sequence[str], takers: _Takers) -> _Names:
    """Rows on these outputs are as they came, so all is looked at if anybody takes them."""
    return None if any(takers.get(Port(node.id, output)) for output in outputs) else frozenset()


def _timing(strategy: WatermarkStrategy | None) -> _Names:
    timestamps = None if strategy is None else strategy.timestamps
    if timestamps is None:
        return frozenset()
    if isinstance(timestamps, str):
        return frozenset([timestamps])
    return columns_in(timestamps) if isinstance(timestamps, Expression) else None


def _all_of(parts: Iterable[_Names]) -> _Names:
    found: set[str] = set()
    for names in parts:
        if names is None:
            return None
        found |= names
    return frozenset(found)
