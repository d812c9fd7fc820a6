"""The fraud detector of the examples with a second keyed step behind it. Run as a script: `fraud_job.py ROOT`.

A file `ROOT/kills/<place>-<number>` is a wish: the worker that comes to this place when event time is in this slice takes the
file away and kills itself. As a file can be taken away once, so can a worker be killed by it.
"""

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import headrace as hr
from examples import fraud_detection as fraud
from headrace.connectors import files, generator
from tests.crash.killing import WHOLE_MATRIX

ROWS = 18_000 if WHOLE_MATRIX else 12_000
ROWS_PER_EPOCH = 1_000
#: Of event time, that of an epoch.
SLICE = timedelta(seconds=ROWS_PER_EPOCH // 100)
BRANCHES = 20


@dataclass
class Count:
    """How many alerts a branch has had, and of which account the last one was."""

    branch: int
    alerts: int
    account: int
    at: datetime


class Detector(fraud.FraudDetector):
    """As the example's, with sudden deaths in the middle of its work."""

    def __init__(self, kills: Path) -> None:
        self.kills = kills

    def process_element(self, payment: Any, ctx: Any) -> Iterator[fraud.Alert]:
        """State has changed, and what was yielded is not out yet."""
        yield from super().process_element(payment, ctx)
        die(self.kills, "element", ctx.timestamp)

    def on_timer(self, timestamp: datetime, ctx: Any) -> None:
        """Behind the change, too."""
        super().on_timer(timestamp, ctx)
        die(self.kills, "timer", timestamp)


class Branches(hr.KeyedProcessFunction):
    """Counts the alerts of each branch; the first call in an epoch comes when the stage before is done."""

    alerts: hr.state.Value[int] = hr.state.FOREVER

    def __init__(self, kills: Path) -> None:
        self.kills = kills

    def process_element(self, alert: Any, ctx: Any) -> Iterator[Count]:
        """One alert."""
        die(self.kills, "behind", ctx.timestamp)
        alerts = (self.alerts.value() or 0) + 1
        self.alerts.update(alerts)
        yield Count(ctx.key, alerts, alert.account, alert.at)


def die(kills: Path, place: str, at: datetime) -> None:
    """If somebody wishes so."""
    try:
        (kills / f"{place}-{(at - fraud.FIRST) // SLICE}").unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def make(start: int, end: int) -> pa.RecordBatch:
    """The payments of the example, every third small and every third large, so that alerts are many."""
    batch = fraud.make(start, end)
    kind = np.arange(start, end) % 3
    amounts = np.select([kind == 0, kind == 1], [fraud.SMALL / 2, fraud.LARGE + 1], default=20.0)
    return batch.set_column(1, "amount", pa.array(amounts))


def branch(alert: Any) -> int:
    """The branch of an account."""
    return int(alert.account % BRANCHES)


def build(root: Path) -> hr.Environment:
    """The job at `root`; its outputs are alerts/ and branches/."""
    env = hr.Environment(
        "fraud",
        checkpoint=root / "state",
        epochs=hr.Epochs(rows=ROWS_PER_EPOCH),
        restart=hr.Restart.never(),
        shards=2,
    )
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=2))
    payments = env.from_source(
        generator.Function(fraud.PAYMENTS, make, rows=ROWS),
        watermarks=strategy.with_timestamps("at"),
        uid="payments",
    )
    alerts = payments.key_by("account").process(
        Detector(root / "kills"), ordered=True, uid="detector"
    )
    alerts.sink_to(files.FileSink(root / "alerts", format="jsonl"), uid="alerts")
    counts = alerts.key_by(branch).process(Branches(root / "kills"), ordered=True, uid="branches")
    counts.sink_to(files.FileSink(root / "branches", format="jsonl"), uid="counts")
    return env


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1])).execute()
    except hr.errors.HeadraceError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.exit(1)
