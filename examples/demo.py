"""Runs a pipeline twice, the second time with a kill -9 in the middle, and compares what came out.

Bids of a seeded auction house arrive up to 3 s out of order, one in a thousand much later. The pipeline counts
them per auction and 10 s of event time on embedded Spark. `Epochs(rows=...)` fixes where epochs are
cut, so both runs must write the same rows: every firing of every window, and every late row.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from rich.console import Console
from rich.table import Table

import headrace as hr
from headrace.connectors import files, generator

EPOCH_ROWS = 200_000
BIDS_IN_50_EVENTS = 46
console = Console(highlight=False)


def main() -> None:
    """Both runs, then the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--verbose", action="store_true", help="show what Spark prints, too")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        run(options.run, options.events)
        return
    if options.verbose:
        os.environ["HEADRACE_VERBOSE"] = "1"
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as scratch:
        plain, killed = Path(scratch, "plain"), Path(scratch, "killed")
        console.rule("one run, undisturbed")
        child = start(plain, options.events)
        echo(child, until=None)
        show(plain, options.events)
        console.rule("the same with a kill -9 in the middle")
        child = start(killed, options.events)
        middle = options.events * BIDS_IN_50_EVENTS // 50 // EPOCH_ROWS // 2
        echo(child, until=middle)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        console.print(f"[bold red]killed[/] with epoch {middle} on record; started again:")
        echo(start(killed, options.events), until=None)
        equal = compare(plain, killed)
    console.print(f"[dim]{time.monotonic() - began:.0f} s in all")
    sys.exit(not equal)


def run(home: Path, events: int) -> None:
    """The pipeline itself; in a process of its own, so that it can be killed."""
    env = hr.Environment(
        "bids-per-auction", checkpoint=home / "checkpoint", epochs=hr.Epochs(rows=EPOCH_ROWS)
    )
    bids = env.from_source(
        generator.Nexmark(
            events, seed=7, event_rate=100_000, disorder=timedelta(seconds=3), late=0.001
        ).bids(),
        watermarks=hr.WatermarkStrategy.bounded_out_of_orderness(
            timedelta(seconds=4)
        ).with_timestamps("date_time"),
        uid="bids",
    )
    per_auction = (
        bids.key_by("auction")
        .window(hr.windows.Tumbling(timedelta(seconds=10)))
        .allowed_lateness(timedelta(seconds=30))
        .aggregate(
            bids=hr.count(), highest=hr.max("price"), total=hr.sum("price"), uid="per-auction"
        )
    )
    per_auction.sink_to(files.FileSink(home / "out", format="parquet"), uid="results")
    per_auction.late.sink_to(files.FileSink(home / "late", format="jsonl"), uid="late")
    watch(env.start())


def watch(job: hr.JobHandle) -> None:
    """Print a line whenever an epoch is recorded, until the job has ended."""
    seen, rows, last = -1, 0, time.monotonic()
    while job.is_running:
        if job.await_epoch(seen + 1, timeout=0.5):
            now, summary = time.monotonic(), job.summary
            # The time of the first epoch is that of starting Spark.
            speed = f"{(summary.rows - rows) / (now - last):,.0f}" if seen >= 0 else "-"
            seen, rows, last = job.epoch, summary.rows, now
            mark = min(job.watermarks.values(), default=None)
            print(
                f"epoch {seen:3}   {rows:>9,} rows   {speed:>9} rows/s"
                f"   watermark {instant(mark):19}   late {summary.late:,}",
                flush=True,
            )
    print(job.wait(), flush=True)


def instant(mark: int | None) -> str:
    """A watermark for people: microseconds since 1970, with a value before and one behind all time."""
    if mark is None or abs(mark) >= 2**62:
        return "end of input" if mark is not None and mark > 0 else "none yet"
    return f"{datetime.fromtimestamp(mark / 1e6, tz=UTC):%Y-%m-%d %H:%M:%S}"


def start(home: Path, events: int) -> subprocess.Popen[str]:
    """The pipeline in a process group of its own."""
    console.print("[dim]starting Spark ...")
    command = [sys.executable, __file__, "--events", str(events), "--run", str(home)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def echo(child: subprocess.Popen[str], *, until: int | None) -> None:
    """Show the progress of a run as one line that changes, up to an epoch or to its end."""
    assert child.stdout is not None
    live = console.is_terminal
    for line in child.stdout:
        if live and line.startswith("epoch"):
            console.file.write("\r\x1b[2K" + line.rstrip())
            console.file.flush()
        else:
            console.file.write(("\n" if live else "") + line)
        if until is not None and line.startswith("epoch") and int(line.split()[1]) >= until:
            console.file.write("\n" if live else "")
            return
    if child.wait() != 0:
        sys.exit(f"the run ended with status {child.returncode}")


def show(home: Path, events: int) -> None:
    """The top auctions, and that every bid is somewhere."""
    results = ds.dataset(home / "out", format="parquet").to_table()
    final: dict[tuple[int, datetime], dict[str, Any]] = {}
    for row in results.sort_by("firing").to_pylist():
        final[row["auction"], row["window_start"]] = row
    table = Table("auction", "window", "bids", "highest", "total", "firings", title="top auctions")
    for row in sorted(final.values(), key=lambda r: (-r["bids"], r["auction"]))[:5]:
        window = f"{row['window_start']:%H:%M:%S} - {row['window_end']:%H:%M:%S}"
        prices = (f"{row['highest']:,}", f"{row['total']:,}")
        table.add_row(
            str(row["auction"]), window, f"{row['bids']:,}", *prices, str(row["firing"] + 1)
        )
    console.print(table)
    counted = sum(row["bids"] for row in final.values())
    late = late_rows(home).num_rows
    whole = BIDS_IN_50_EVENTS * (events // 50) + max(0, events % 50 - 4)
    console.print(f"{counted:,} bids in windows + {late:,} late = {counted + late:,} of {whole:,}")
    if counted + late != whole:
        sys.exit("bids are missing")


def compare(plain: Path, killed: Path) -> bool:
    """Whether both runs wrote the same rows, however they are spread over files."""
    equal = True
    for name, rows in (("firings", firings), ("late rows", late_rows)):
        one, other = rows(plain), rows(killed)
        same = one.equals(other)
        equal &= same
        verdict = "[bold green]equal[/]" if same else "[bold red]DIFFERENT[/]"
        console.print(f"{name}: {one.num_rows:,} and {other.num_rows:,}: {verdict}")
    return equal


def firings(home: Path) -> pa.Table:
    """All results of a run, in an order that does not depend on files."""
    return ordered(ds.dataset(home / "out", format="parquet").to_table())


def late_rows(home: Path) -> pa.Table:
    """All late rows of a run."""
    found = sorted((home / "late").glob("*.jsonl"))
    return ordered(pa.table({"line": [line for f in found for line in f.read_text().splitlines()]}))


def ordered(table: pa.Table) -> pa.Table:
    """The rows sorted by all columns."""
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


if __name__ == "__main__":
    main()
