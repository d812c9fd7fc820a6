"""Stage k > 0 of one shard: every keyed step of that depth, in one pass over the epoch's parcels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT, Port
from headrace._graph.plan import Plan
from headrace._runtime import registry
from headrace._runtime.operator import Outputs
from headrace._runtime.report import TaskReport
from headrace._runtime.segment import Segment
from headrace._runtime.state import ShardState
from headrace._runtime.tick import Tick
from headrace._runtime.wire import AFTER, BEFORE, Parcel, decode_rows

__all__ = ["host_shard"]


def host_shard(
    plan: Plan,
    parcels: Sequence[Parcel],
    segment: Segment,
    *,
    tick: Tick,
    report: TaskReport,
    open_state: Callable[[int], ShardState],
) -> Iterator[tuple[int, Parcel]]:
    """Run the keyed steps of `report.stage` on their parcels; yields what goes to later stages.

    `parcels` are those for this stage, in order. State is committed step by step: the caller's epoch is
    all or nothing, so a failure behind a commit leaves a chunk that no manifest of Spark's names.
    """
    for node in plan.hosted(report.stage):
        mine = [parcel for parcel in parcels if parcel.node == node]
        state = open_state(node) if registry.tables(plan.nodes[node]) else None
        _run(plan, node, mine, segment, tick, report, state)
    yield from segment.parcels()


def _run(
    plan: Plan,
    node: int,
    parcels: Sequence[Parcel],
    segment: Segment,
    tick: Tick,
    report: TaskReport,
    state: ShardState | None,
) -> None:
    uid = plan.nodes[node].uid
    operator = registry.keyed(plan.nodes[node], state)
    operator.equip(report.metrics_of(uid), report.task)
    previous = "" if state is None else state.stamp
    for parcel in parcels:
        if parcel.phase == BEFORE:
            operator.merge(decode_rows(parcel.payload), parcel.side)
    _push(segment, report, plan, node, operator.tick(tick.moment(plan.feeds[node])), BEFORE)
    for parcel in parcels:
        if parcel.phase == AFTER:
            operator.merge(decode_rows(parcel.payload), parcel.side)
    _push(segment, report, plan, node, operator.settle(), AFTER)
    outlook = operator.outlook()
    report.outlooks[uid] = (outlook.fires_at, outlook.keys, outlook.due)
    if state is not None:
        report.stamps[uid] = (previous, state.commit())


def _push(
    segment: Segment, report: TaskReport, plan: Plan, node: int, outputs: Outputs, phase: int
) -> None:
    for output, rows in outputs:
        if output in (LATE, LATE_RIGHT, ERRORS):
            # The feeder took them for rows that go into state.
            report.count(plan.nodes[node].uid, "held", -len(rows))
        segment.push(Port(node, output), rows, phase)
