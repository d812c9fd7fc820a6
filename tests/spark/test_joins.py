"""Every kind of join on Spark says what it says in this process."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.connectors import generator
from headrace.connectors.memory import MemorySink
from headrace.testing import run_local
from tests.crash import pipeline
from tests.join_zoo import NAMES, add_joins

ROWS = 9_000


def zoo(root: Path) -> tuple[hr.Environment, dict[str, MemorySink]]:
    env = hr.Environment("joins", checkpoint=root / "state", epochs=hr.Epochs(rows=1_500), shards=2)
    bound = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=1))
    rows = env.from_source(
        generator.Function(pipeline.SCHEMA, pipeline.make, rows=ROWS),
        watermarks=bound.with_timestamps("at"),
        uid="rows",
    )
    sinks = {name: MemorySink() for name in NAMES}
    add_joins(rows, sinks.__getitem__)
    return env, sinks


def bag(sink: MemorySink) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in sink.to_pylist())


def test_every_kind_of_join_is_the_same_on_spark_and_in_this_process(tmp_path: Path) -> None:
    env, there = zoo(tmp_path)
    assert env.execute().finished
    quiet, here = zoo(tmp_path)
    run_local(quiet, shards=3)
    for name in NAMES:
        assert bag(there[name]), name
        assert bag(there[name]) == bag(here[name]), name
