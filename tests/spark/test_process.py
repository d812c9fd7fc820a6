"""Random programs on Spark, as on the local runner: all outputs and the state at the end, against the interpreter."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, find, settings

import headrace as hr
from tests.local.program_jobs import ProgramJob, build, expected, found, kept
from tests.local.test_process import jobs
from tests.runtime.process.cases import RANDOM
from tests.spark.conftest import logged_epochs

#: Spark keeps the offsets of about so many epochs, and each costs a third of a second.
MOST_EPOCHS = 12


def is_rich(job: ProgramJob) -> bool:
    """Whether there is something to see: rows on all sides, and timers that do something."""
    sizes = [sum(map(len, partitions)) for partitions in job.streams]
    return min(sizes) >= 8 and any(job.on_timers) and job.shards > 1


def drawn(seed: int, *said: Any, **more: Any) -> ProgramJob:
    """The job of a seed, cut into no more epochs than Spark's log remembers."""
    few = settings(
        RANDOM, max_examples=200, derandomize=False, database=None, phases=[Phase.generate]
    )
    job = find(jobs(*said, **more), is_rich, settings=few, random=random.Random(seed))
    rows = max(len(partition) for stream in job.streams for partition in stream)
    parts = max(map(len, job.streams))
    least = -(-rows * parts // (MOST_EPOCHS - 3))
    return replace(job, epoch_rows=max(job.epoch_rows, least), rescale={}, crashes=())


@pytest.mark.parametrize(
    ("seed", "kind", "said"),
    [
        (1, "keyed", {"ordered": False, "on_error": "dead_letter"}),
        (2, "keyed", {"ordered": False, "on_error": "fail"}),
        (3, "keyed", {"ordered": True}),
        (4, "co", {"ordered": False}),
        (5, "co", {"ordered": True}),
        (6, "broadcast", {}),
    ],
)
def test_spark_agrees_with_the_interpreter(seed: int, kind: str, said: Any, tmp_path: Path) -> None:
    job = drawn(seed, kind, **said)
    checkpoint = tmp_path / "state"
    env, sinks = build(job, checkpoint=checkpoint, shards=job.shards)
    summary = env.execute()
    assert summary.finished
    epochs = logged_epochs(checkpoint)
    assert [epoch.number for epoch in epochs] == list(range(summary.epoch + 1))
    right, state = expected(job, epochs)
    assert found(sinks) == right
    assert kept(job, lambda uid, name: hr.read_state(checkpoint, uid, name)) == state
