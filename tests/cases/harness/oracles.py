"""The answer of the row-at-a-time oracle, for pipelines of one step that has one: given the epochs and watermarks of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace._graph.join_nodes import AsOfJoin, BroadcastJoin, IntervalJoin
from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT, MAIN, ReadSource, WindowStep, WriteSink
from headrace.testing import LocalEpoch
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.watermarks import NO_WATERMARK
from tests.cases.harness.case import Case
from tests.cases.harness.feeds import timestamps
from tests.cases.harness.playing import Played
from tests.cases.harness.runs import Run
from tests.oracle import oracle_of
from tests.oracle.joins.asof import AsOfOracle
from tests.oracle.joins.broadcast import BroadcastOracle
from tests.oracle.joins.interval import IntervalOracle

__all__ = ["by_oracle"]

Rows = list[Mapping[str, Any]]
#: Output of the step -> rows.
Answer = Mapping[str, Rows]


def by_oracle(case: Case, run: Run, played: Played) -> dict[str, Rows] | None:
    """The rows of each output of the pipeline; None if no oracle knows the pipeline."""
    nodes = played.env.graph.nodes
    steps = [node for node in nodes if not isinstance(node, ReadSource | WriteSink)]
    sinks = [node for node in nodes if isinstance(node, WriteSink)]
    ask = _asked(steps[0]) if len(steps) == 1 else None
    if ask is None:
        return None
    names = [nodes[port.node].uid for port in steps[0].inputs]
    said = ask([_given(case, run, names, epoch) for epoch in played.result.epochs])
    outputs = {sink.uid.removeprefix("out-"): sink.inputs[0].output for sink in sinks}
    # An oracle has dead letters in another form.
    return {
        name: list(played.rows[name]) if output == ERRORS else said.get(output, [])
        for name, output in outputs.items()
    }


def _asked(node: Any) -> Callable[[Sequence[StepEpoch]], Answer] | None:
    match node:
        case WindowStep():
            return lambda epochs: _windows(node, epochs)
        case IntervalJoin():
            return lambda epochs: _phases(IntervalOracle(node), epochs)
        case BroadcastJoin():
            return lambda epochs: _phases(BroadcastOracle(node), epochs)
        case AsOfJoin():
            return lambda epochs: _versions(node, epochs)
    return None


def _windows(node: WindowStep, epochs: Sequence[StepEpoch]) -> Answer:
    rows = [epoch._replace(rows=[(row.at, row.fields) for row in epoch.rows]) for epoch in epochs]
    results, late = oracle_of(node).run(rows)
    return {MAIN: results, LATE: late}


def _phases(oracle: IntervalOracle | BroadcastOracle, epochs: Iterable[StepEpoch]) -> Answer:
    found: dict[str, Rows] = {}
    for epoch in epochs:
        for phase in oracle.epoch(epoch):
            for output, rows in phase.items():
                found.setdefault(output, []).extend(row for _, row in rows)
    return found


def _versions(node: AsOfJoin, epochs: Sequence[StepEpoch]) -> Answer:
    answers = AsOfOracle(node).run(epochs)
    return {
        MAIN: [row for said in answers for _, row in said.ticked + said.settled],
        LATE: [row for said in answers for row in said.late_left],
        LATE_RIGHT: [row for said in answers for row in said.late_right],
    }


def _given(case: Case, run: Run, names: Sequence[str], epoch: LocalEpoch) -> StepEpoch:
    """An epoch as a step with these inputs gets it."""
    rows = [
        SidedRow(*_timed(case, name, row), side, (name, partition, place))
        for side, name in enumerate(names)
        for partition, (start, end) in epoch.ranges.get(name, {}).items()
        for place, row in enumerate(run.arrivals[name][int(partition)][start:end], start)
    ]
    before, reached = (
        min(marks.get(name, NO_WATERMARK) for name in names)
        for marks in (epoch.before, epoch.watermarks)
    )
    return StepEpoch(before, reached, rows)


def _timed(case: Case, name: str, row: int) -> tuple[int, Mapping[str, Any]]:
    stream = case.streams[name]
    fields = stream.rows[row]
    return next(iter(timestamps([fields], stream.time)), NO_WATERMARK), fields
