"""Files in, files out, on Spark: a watched directory, malformed lines, merged output."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds

import headrace as hr
from headrace.connectors import files
from headrace.connectors.memory import MemorySink
from tests.crash.killing import wait_until


@dataclass
class Order:
    customer: str
    amount: int
    at: datetime


def write(path: Path, *lines: object) -> None:
    """Appears whole, as a file should in a directory that is watched."""
    draft = path.with_name(f".{path.name}")
    draft.write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    )
    draft.rename(path)


def order(second: int, customer: str, amount: int) -> dict[str, object]:
    at = datetime(2025, 1, 1, 0, 0, second, tzinfo=UTC)
    return {"customer": customer, "amount": amount, "at": at.isoformat()}


def test_watched_directory_feeds_windows_and_bad_lines_are_set_apart(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    env = hr.Environment("orders", checkpoint=tmp_path / "state", shards=2)
    orders = env.from_source(
        files.FileSource(
            inbox,
            format="jsonl",
            schema=Order,
            bounded=False,
            on_error="dead_letter",
            poll_interval=timedelta(milliseconds=100),
        ),
        watermarks=hr.WatermarkStrategy.monotonous().with_timestamps("at"),
        uid="orders",
    )
    dead = MemorySink()
    orders.errors.sink_to(dead, uid="dead")
    (
        orders.key_by("customer")
        .window(hr.windows.Tumbling(timedelta(seconds=10)))
        .aggregate(total=hr.sum("amount"), uid="totals")
        .sink_to(
            files.FileSink(tmp_path / "out", roll_interval=timedelta(minutes=5)), uid="results"
        )
    )
    job = env.start()
    write(
        inbox / "1.jsonl", order(1, "ann", 3), '{"customer": "bob", "amount": ', order(2, "ann", 4)
    )
    assert job.await_epoch(1, timeout=timedelta(minutes=2))
    write(inbox / "2.jsonl", order(3, "bob", 5), order(12, "bob", 6))
    # Not the next epoch: that may be one in which only the watermark moves.
    assert wait_until(lambda: job.summary.rows == 4, patience_s=60)
    summary = job.stop(drain=True, timeout=60)
    assert summary.finished
    assert summary.dead == 1
    (letter,) = dead.to_pylist()
    assert letter["partition"].endswith("1.jsonl")
    assert letter["offset"] == 2
    found = ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist()
    totals = {(row["customer"], row["window_start"].second): row["total"] for row in found}
    assert totals == {("ann", 0): 7, ("bob", 0): 5, ("bob", 10): 6}
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1
