"""Finds cards that are tried out: a small payment, and within a minute a large one of the same account.

The walkthrough of Flink's documentation in event time. Payments arrive up to two seconds out of order; `ordered=True`
hands them to the detector in the order in which they were made, with its timers between them, so the alerts depend on the
payments alone and not on where epochs were cut.

    python examples/fraud_detection.py            200,000 payments on Spark; prints the alerts
    python examples/fraud_detection.py --local    the same in this process, without Java
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace import testing
from headrace.connectors import console, generator

SMALL, LARGE = 1.00, 500.00
MINUTE = timedelta(minutes=1)
ACCOUNTS = 3_000
FIRST = datetime(2025, 1, 1, tzinfo=UTC)


PAYMENTS = pa.schema(
    {"account": pa.int64(), "amount": pa.float64(), "at": pa.timestamp("us", tz="UTC")}
)


@dataclass
class Alert:
    """A large payment that came soon after a small one."""

    account: int
    amount: float
    at: datetime


class FraudDetector(hr.KeyedProcessFunction):
    """Remembers a small payment until the next payment, or for a minute."""

    remembered_until: hr.state.Value[datetime]

    def process_element(self, payment: Any, ctx: Any) -> Iterator[Alert]:
        """A payment of an account."""
        until = self.remembered_until.value()
        if until is not None:
            if payment.amount > LARGE:
                yield Alert(payment.account, payment.amount, payment.at)
            ctx.timers.delete_event_time(until)
            self.remembered_until.clear()
        if payment.amount < SMALL:
            self.remembered_until.update(ctx.timestamp + MINUTE)
            ctx.timers.register_event_time(ctx.timestamp + MINUTE)

    def on_timer(self, timestamp: datetime, ctx: Any) -> None:
        """The minute is over."""
        self.remembered_until.clear()


def detect(payments: hr.Stream) -> hr.Stream:
    """The alerts of a stream of payments."""
    return payments.key_by("account").process(FraudDetector(), ordered=True, uid="detector")


def make(start: int, end: int) -> pa.RecordBatch:
    """Payments `[start, end)`: 100 a second, up to two seconds late; 3 in 100 are small, 2 in 100 are large."""
    number = np.arange(start, end, dtype=np.int64)
    kind, part, account, delay = (_drawn(number, column) for column in range(4))
    amount = np.select(
        [kind % 100 < 3, kind % 100 < 5],
        [part % 100 / 100, LARGE + 1 + part % 1_000],
        default=SMALL + part % 49_900 / 100,
    )
    at_us = int(FIRST.timestamp()) * 1_000_000 + number * 10_000 - delay % 2_000_000
    return pa.record_batch([account % ACCOUNTS, amount, at_us.view("datetime64[us]")], PAYMENTS)


def _drawn(number: Any, column: int) -> Any:
    """Numbers that look random and are always the same: a job that starts again must find the same payments."""
    mixed = (number * 4 + column).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(33)).astype(np.int64)


def pipeline(env: hr.Environment, rows: int) -> hr.Stream:
    """The alerts of made-up payments."""
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=2)).with_timestamps(
        "at"
    )
    source = generator.Function(PAYMENTS, make, rows=rows)
    return detect(env.from_source(source, watermarks=strategy, uid="payments"))


def main() -> None:
    """Print the alerts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--payments", type=int, default=200_000)
    parser.add_argument("--local", action="store_true", help="in this process, without Spark")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-fraud-") as scratch:
        env = hr.Environment("fraud-detection", checkpoint=Path(scratch, "checkpoint"))
        pipeline(env, options.payments).sink_to(console.ConsoleSink(), uid="alerts")
        if options.local:
            testing.run_local(env)
        else:
            env.execute()


if __name__ == "__main__":
    main()
