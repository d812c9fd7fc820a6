"""Timestamps in the middle of the graph: rows go on with new ones, or become dead letters.

The greatest timestamp is reported as a source's is: of each source partition where rows come straight from
them, otherwise of the step as a whole.
"""

from __future__ import annotations

from headrace._epochs.settings import WHOLE_STEP, partition_name
from headrace._graph.nodes import ERRORS, MAIN, AssignTimestamps
from headrace._runtime.dead_letters import refused_records
from headrace._runtime.operator import Outputs
from headrace._runtime.report import TaskReport
from headrace._runtime.rows import Rows
from headrace._runtime.timestamps import assign

__all__ = ["reassign"]


def reassign(rows: Rows, node: AssignTimestamps, clock_us: int, report: TaskReport) -> Outputs:
    """The rows with the timestamps that the step says, and those that have none that can be used."""
    timed, dead = assign(rows, node, clock_us)
    if dead:
        yield ERRORS, refused_records(node.uid, dead, clock_us)
    if len(timed):
        stamps = timed.timestamps
        assert stamps is not None
        report.observe(node.uid, _partition(rows, node), int(stamps.min()), int(stamps.max()))
        yield MAIN, timed


def _partition(rows: Rows, node: AssignTimestamps) -> str:
    if not node.by_partition:
        return WHOLE_STEP
    assert rows.origin is not None
    return partition_name(rows.origin.source, rows.origin.lane)
