"""What a plan says of time: to the epoch planner, and to those who ask why nothing fires."""

from __future__ import annotations

from collections.abc import Mapping

from headrace._epochs.facts import Facts
from headrace._epochs.offset import Offset
from headrace._epochs.settings import Assigned, PlannerSettings
from headrace._graph.graph import sources_of
from headrace._graph.nodes import AssignTimestamps
from headrace._graph.plan import Plan
from headrace._watermarks.waiting import Known
from headrace.config import Epochs

__all__ = ["assigned_partitions", "known_time", "planner_settings"]


def planner_settings(plan: Plan, epochs: Epochs) -> PlannerSettings:
    """The planner's view of a job."""
    steps = {n.uid: n for n in plan.nodes.values() if isinstance(n, AssignTimestamps)}
    return PlannerSettings(
        epochs,
        {uid: node.source for uid, node in plan.sources.items()},
        {
            **{uid: node.strategy for uid, node in plan.sources.items()},
            **{uid: node.strategy for uid, node in steps.items()},
        },
        assigned=_assigned(plan, steps),
        feeds={
            plan.nodes[number].uid: feeds
            for number, feeds in plan.feeds.items()
            if plan.nodes[number].uid not in steps
        },
    )


def assigned_partitions(plan: Plan, offset: Offset) -> dict[str, list[str]]:
    """The partitions that steps which assign timestamps have in an epoch."""
    steps = {n.uid: n for n in plan.nodes.values() if isinstance(n, AssignTimestamps)}
    return {uid: a.partitions(offset.ranges) for uid, a in _assigned(plan, steps).items()}


def known_time(plan: Plan, offset: Offset, facts: Facts) -> Known:
    """What is known of time behind an epoch."""
    settings = planner_settings(plan, Epochs())
    return Known(
        facts.tracker, offset.watermarks, settings.strategies, settings.feeds, facts.outlooks
    )


def _assigned(plan: Plan, steps: Mapping[str, AssignTimestamps]) -> dict[str, Assigned]:
    nodes = tuple(plan.nodes.values())
    return {
        uid: Assigned(
            plan.feeds[node.id],
            tuple(s.uid for s in sources_of(nodes, node.inputs)) if node.by_partition else (),
        )
        for uid, node in steps.items()
    }
