"""Runs a case once, in this process, and returns the rows of its outputs as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import headrace as hr
from headrace.connectors.memory import MemorySink
from headrace.testing import LocalResult, run_local
from tests.cases.harness.case import MAIN, Case
from tests.cases.harness.feeds import Feed, in_band, largest_delay, punctual, timestamps
from tests.cases.harness.runs import Run

__all__ = ["Played", "play"]

#: output -> rows
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Played:
    """What one run gave."""

    env: hr.Environment
    rows: Rows
    result: LocalResult


def play(case: Case, run: Run) -> Played:
    """All rows that its outputs have at the end."""
    env = hr.Environment("case")
    streams = {name: _stream(env, case, run, name) for name in case.streams}
    outputs = case.pipeline(**streams)
    named = outputs if isinstance(outputs, Mapping) else {MAIN: outputs}
    sinks = {name: MemorySink() for name in named}
    for name, stream in named.items():
        stream.sink_to(sinks[name], uid=f"out-{name}")
    result = run_local(
        env,
        run.shards,
        tasks=run.tasks,
        crashes=run.crashes,
        rescale=run.rescale,
        # An epoch of the case that has no rows is none of the job: wait for the next one.
        wait=timedelta(hours=1),
    )
    assert result.finished, "the input did not end"
    return Played(env, {name: sink.to_pylist() for name, sink in sinks.items()}, result)


def _stream(env: hr.Environment, case: Case, run: Run, name: str) -> hr.Stream:
    given = case.streams[name]
    partitions = [[given.rows[row] for row in part] for part in run.arrivals[name]]
    source = Feed(partitions, given.schema, run.ends(name))
    if given.time is None:
        return env.from_source(source, uid=name)
    if run.watermarks == "in-band":
        strategy = in_band(given.watermarks or punctual(given))
    elif run.watermarks == "bounded":
        delays = [largest_delay(timestamps(part, given.time)) for part in partitions]
        strategy = hr.WatermarkStrategy.bounded_out_of_orderness(max(delays))
    else:
        strategy = hr.WatermarkStrategy.no_watermarks()
    return env.from_source(source, watermarks=strategy.with_timestamps(given.time), uid=name)
