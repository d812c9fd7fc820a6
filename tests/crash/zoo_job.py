"""A job with every kind of window, or of join. Run as a script: `HEADRACE_ZOO=windows zoo_job.py ROOT`."""

import os
import sys
from datetime import timedelta
from pathlib import Path

import headrace as hr
from headrace.connectors import files, generator
from tests import join_zoo, zoo
from tests.crash import pipeline
from tests.crash.killing import WHOLE_MATRIX

#: An epoch for each time that it is killed, and some after the last.
ROWS = 36_000 if WHOLE_MATRIX else 8_000
ROWS_PER_EPOCH = 1_000
ZOOS = {"windows": zoo.add_windows, "joins": join_zoo.add_joins}


def build(kinds: str, root: Path) -> hr.Environment:
    """The job at `root`, with one folder of results for each kind."""
    env = hr.Environment(
        kinds,
        checkpoint=root / "state",
        epochs=hr.Epochs(rows=ROWS_PER_EPOCH),
        restart=hr.Restart.never(),
        shards=2,
    )
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=1))
    rows = env.from_source(
        generator.Function(pipeline.SCHEMA, pipeline.make, rows=ROWS),
        watermarks=strategy.with_timestamps("at"),
        uid="rows",
    )
    ZOOS[kinds](rows, lambda name: files.FileSink(root / name, format="parquet"))
    return env


if __name__ == "__main__":
    try:
        build(os.environ["HEADRACE_ZOO"], Path(sys.argv[1])).execute()
    except hr.errors.HeadraceError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.exit(1)
