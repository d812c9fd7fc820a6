"""The job with every kind of window. Run as a script: `windows_job.py ROOT`."""

import sys
from pathlib import Path

import headrace as hr
from headrace.connectors import files, generator
from tests.crash import pipeline
from tests.zoo import add_windows

ROWS = 12_000
ROWS_PER_EPOCH = 1_000


def build(root: Path) -> hr.Environment:
    """The job at `root`, with one folder of results for each kind."""
    env = hr.Environment(
        "windows",
        checkpoint=root / "state",
        epochs=hr.Epochs(rows=ROWS_PER_EPOCH),
        restart=hr.Restart.never(),
        shards=2,
    )
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(pipeline.timedelta(seconds=1))
    rows = env.from_source(
        generator.Function(pipeline.SCHEMA, pipeline.make, rows=ROWS),
        watermarks=strategy.with_timestamps("at"),
        uid="rows",
    )
    add_windows(rows, lambda name: files.FileSink(root / name, format="parquet"))
    return env


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1])).execute()
    except hr.errors.HeadraceError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.exit(1)
