"""The fraud detector of the examples: what it tells and what it forgets, wherever epochs are cut."""

import inspect
from datetime import datetime, timedelta
from typing import Any

import headrace as hr
from examples import fraud_detection as fraud
from headrace.connectors import memory
from headrace.testing import run_local

#: Of Flink's FraudDetector.java with state and timers, from the class to its last brace.
LINES_OF_THE_WALKTHROUGH = 72


def alerts(rows: list[Any], **options: Any) -> list[tuple[int, float, float]]:
    """(account, second, amount) of every alert, in order of time."""
    env = hr.Environment("fraud")
    bound = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=2))
    source = memory.MemorySource(rows, schema=fraud.PAYMENTS)
    payments = env.from_source(source, watermarks=bound.with_timestamps("at"), uid="payments")
    found = memory.MemorySink()
    fraud.detect(payments).sink_to(found, uid="alerts")
    run_local(env, **options)
    told = [(r["account"], _second(r["at"]), r["amount"]) for r in found.to_pylist()]
    return sorted(told, key=lambda alert: alert[1])


def _second(at: datetime) -> float:
    return (at - fraud.FIRST).total_seconds()


def test_crashes_and_cuts_change_nothing() -> None:
    rows = fraud.make(0, 20_000).to_pylist()
    wanted = reference(rows)
    assert len(wanted) > 5
    for options in (
        {"shards": 1},
        {"shards": 4, "epochs": hr.Epochs(rows=1_500), "crashes": [(2, "staged"), (5, "durable")]},
    ):
        assert alerts(rows, **options) == wanted


def reference(rows: list[dict[str, Any]]) -> list[tuple[int, float, float]]:
    """The same in one loop over all payments in the order of their time."""
    small: dict[int, datetime] = {}
    told = []
    for row in sorted(rows, key=lambda r: r["at"]):
        until = small.pop(row["account"], None)
        if until is not None and row["at"] <= until and row["amount"] > fraud.LARGE:
            told.append((row["account"], _second(row["at"]), row["amount"]))
        if row["amount"] < fraud.SMALL:
            small[row["account"]] = row["at"] + fraud.MINUTE
    return told


def test_the_detector_is_shorter_than_flinks() -> None:
    assert len(inspect.getsource(fraud.FraudDetector).splitlines()) <= LINES_OF_THE_WALKTHROUGH // 2
