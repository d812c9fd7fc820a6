"""The one place that knows which operator runs which node."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headrace._graph import join_nodes, nodes
from headrace._runtime import rowwise
from headrace._runtime.asynchronous import MapAsync
from headrace._runtime.joins.asof.operator import AsOfOperator, asof_tables
from headrace._runtime.joins.broadcast.feeders import broadcast_feeder
from headrace._runtime.joins.broadcast.operator import BroadcastOperator, broadcast_tables
from headrace._runtime.joins.extreme.feeder import ExtremeFeeder
from headrace._runtime.joins.extreme.operator import ExtremeOperator, extreme_tables
from headrace._runtime.joins.feeder import JoinFeeder
from headrace._runtime.joins.interval.operator import IntervalOperator, interval_tables
from headrace._runtime.joins.lookup import LookupJoin
from headrace._runtime.joins.regular.operator import RegularOperator, regular_tables
from headrace._runtime.joins.top.operator import TopPairOperator
from headrace._runtime.joins.window.feeder import WindowJoinFeeder
from headrace._runtime.joins.window.operator import WindowJoinOperator, window_join_tables
from headrace._runtime.operator import Feeder, KeyedOperator, StatelessOperator
from headrace._runtime.process.columns.operator import BatchOperator
from headrace._runtime.process.operator import ProcessOperator
from headrace._runtime.process.spreading import process_feeder
from headrace._runtime.process.stateless import RowProcess
from headrace._runtime.process.states.stores import process_tables
from headrace._runtime.repartition import (
    RepartitionFeeder,
    RepartitionOperator,
    repartition_tables,
)
from headrace._runtime.splitting import Split
from headrace._runtime.state import ShardState, TableSpec
from headrace._runtime.windows.counts.feeder import CountFeeder
from headrace._runtime.windows.counts.operator import CountOperator, count_tables
from headrace._runtime.windows.lookback.feeder import LookBackFeeder
from headrace._runtime.windows.lookback.operator import LookBackOperator, look_back_tables
from headrace._runtime.windows.panes.feeder import WindowFeeder
from headrace._runtime.windows.panes.operator import WindowOperator, window_tables
from headrace._runtime.windows.rows.feeder import RowsFeeder
from headrace._runtime.windows.rows.layout import rows_tables
from headrace._runtime.windows.rows.operator import RowsOperator
from headrace._runtime.windows.sessions.feeder import SessionFeeder
from headrace._runtime.windows.sessions.operator import SessionOperator, session_tables
from headrace.errors import EngineError

__all__ = ["feeder", "keyed", "stateless", "tables"]

_Maker = TypeVar("_Maker")
_Made = TypeVar("_Made")

_STATELESS: Mapping[type[nodes.Node], Callable[..., StatelessOperator]] = {
    nodes.FilterBy: rowwise.FilterBy,
    nodes.FilterRows: rowwise.FilterRows,
    nodes.FlatMapRows: rowwise.FlatMapRows,
    nodes.KeyByFunction: rowwise.KeyByFunction,
    nodes.MapAsync: MapAsync,
    nodes.MapBatches: rowwise.MapBatches,
    nodes.MapRows: rowwise.MapRows,
    nodes.RowProcess: RowProcess,
    nodes.Select: rowwise.Select,
    nodes.Split: Split,
    nodes.Union: rowwise.Union,
    join_nodes.LookupJoin: LookupJoin,
}
_FEEDERS: Mapping[type[nodes.Node], Callable[..., Feeder]] = {
    nodes.CountAggregate: CountFeeder,
    nodes.KeyedProcess: process_feeder,
    nodes.Repartition: RepartitionFeeder,
    nodes.SessionAggregate: SessionFeeder,
    nodes.LookBackAggregate: LookBackFeeder,
    nodes.WindowAggregate: WindowFeeder,
    nodes.WindowProcess: RowsFeeder,
    join_nodes.AsOfJoin: JoinFeeder,
    join_nodes.IntervalJoin: JoinFeeder,
    join_nodes.KeepRow: JoinFeeder,
    join_nodes.RegularJoin: JoinFeeder,
    join_nodes.BroadcastJoin: broadcast_feeder,
    join_nodes.TopPairJoin: JoinFeeder,
    join_nodes.WindowExtreme: ExtremeFeeder,
    join_nodes.WindowJoin: WindowJoinFeeder,
}


def _process(node: nodes.KeyedProcess, state: ShardState) -> KeyedOperator:
    return (BatchOperator if node.kind == "batch" else ProcessOperator)(node, state)


_KEYED: Mapping[type[nodes.Node], Callable[[Any, Any], KeyedOperator]] = {
    nodes.CountAggregate: CountOperator,
    nodes.KeyedProcess: _process,
    nodes.Repartition: RepartitionOperator,
    nodes.SessionAggregate: SessionOperator,
    nodes.LookBackAggregate: LookBackOperator,
    nodes.WindowAggregate: WindowOperator,
    nodes.WindowProcess: RowsOperator,
    join_nodes.AsOfJoin: AsOfOperator,
    join_nodes.IntervalJoin: IntervalOperator,
    join_nodes.KeepRow: RegularOperator,
    join_nodes.RegularJoin: RegularOperator,
    join_nodes.BroadcastJoin: BroadcastOperator,
    join_nodes.TopPairJoin: TopPairOperator,
    join_nodes.WindowExtreme: ExtremeOperator,
    join_nodes.WindowJoin: WindowJoinOperator,
}
_TABLES: Mapping[type[nodes.Node], Callable[[Any], tuple[TableSpec, ...]]] = {
    nodes.CountAggregate: count_tables,
    nodes.KeyedProcess: process_tables,
    nodes.Repartition: repartition_tables,
    nodes.SessionAggregate: session_tables,
    nodes.LookBackAggregate: look_back_tables,
    nodes.WindowAggregate: window_tables,
    nodes.WindowProcess: rows_tables,
    join_nodes.AsOfJoin: asof_tables,
    join_nodes.IntervalJoin: interval_tables,
    join_nodes.KeepRow: regular_tables,
    join_nodes.RegularJoin: regular_tables,
    join_nodes.BroadcastJoin: broadcast_tables,
    join_nodes.TopPairJoin: regular_tables,
    join_nodes.WindowExtreme: extreme_tables,
    join_nodes.WindowJoin: window_join_tables,
}


def stateless(node: nodes.Node, side: int = 0) -> StatelessOperator:
    """The operator of a step that looks at one batch at a time, for one of its inputs."""
    return _for_side(_find(_STATELESS, node), node, side)


def feeder(node: nodes.Node, side: int = 0) -> Feeder:
    """A new, empty first half of a keyed step, for one of its inputs."""
    return _for_side(_find(_FEEDERS, node), node, side)


def keyed(node: nodes.Node, state: ShardState | None) -> KeyedOperator:
    """The second half of a keyed step, on the state of one shard; None if it has no tables."""
    return _find(_KEYED, node)(node, state)


def tables(node: nodes.Node) -> tuple[TableSpec, ...]:
    """The state that a keyed step declares."""
    return _find(_TABLES, node)(node)


def _for_side(make: Callable[..., _Made], node: nodes.Node, side: int) -> _Made:
    """Only steps that take their inputs apart are told which one it is."""
    apart = isinstance(node, nodes.ProcessStep | join_nodes.JoinStep)
    return make(node, side) if apart else make(node)


def _find(entries: Mapping[type[nodes.Node], _Maker], node: nodes.Node) -> _Maker:
    made = entries.get(type(node))
    if made is None:
        raise EngineError(f"No operator is registered for the {node.verb} step '{node.uid}'.")
    return made
