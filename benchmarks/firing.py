"""One window that fires a million keys at once: how fast, and what memory it takes.

    python benchmarks/firing.py

In every 10 s of event time each key gets one row, all within the first second; the next window's rows then move the
watermark past the end of them all, be they tumbling windows of 10 s or sessions with a gap of 3 s. Epochs are of 250,000
rows: four fill a window, and the second of them fires the window before. So of four epochs one fires a million keys and
three do not, which is what it is compared with. Durations are Spark's of the whole epoch: state
checkpointed, results written to Parquet. The first firing warms up, then come those that are timed, then those during which
memory is sampled (PSS: all processes, the JVM included, shared pages counted once), which would disturb the clock.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from memory_use import memory_use
from processes import ContenderFailed, measure

import headrace as hr
from headrace.connectors import files, generator

EPOCH_ROWS = 250_000
WARMING, TIMED, SAMPLED = 1, 3, 2
SAMPLE_S = 0.1
MB = 2**20
#: 2026-01-01 00:00 UTC.
FIRST_US = 1_767_225_600_000_000
EVENTS = pa.schema(
    {"account": pa.int64(), "amount": pa.int64(), "ts": pa.timestamp("us", tz="UTC")}
)
KINDS: dict[str, Callable[[], Any]] = {
    "tumbling": lambda: hr.windows.Tumbling(timedelta(seconds=10)),
    "session": lambda: hr.windows.Session(timedelta(seconds=3)),
}
HEADER = """\
| window | keys fired | firing epoch | other epochs | keys/s | keys/s, less the other epochs' time | PSS | PSS of other epochs |
|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """A line of Markdown for each kind of window, each measured in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=300, help="seconds that a run may take")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(options.only[0], options.keys, options.cores)
        return
    print(HEADER, flush=True)
    for kind in options.only:
        arguments = ["--measure", "--only", kind, "--keys", options.keys, "--cores", options.cores]
        try:
            print(_line(kind, measure("firing.py", arguments, limit_s=options.limit)), flush=True)
        except ContenderFailed as failed:
            print(f"{kind} failed: {failed}", file=sys.stderr, flush=True)


def _line(kind: str, found: dict[str, float]) -> str:
    fired, firing_ms, other_ms = found["fired"], found["firing_ms"], found["other_ms"]
    # With few keys the difference is noise, and a speed made of it would mean nothing.
    more_ms = firing_ms - other_ms if firing_ms > 1.2 * other_ms else None
    cells = [
        kind,
        f"{fired:,.0f}",
        f"{firing_ms:,.0f} ms",
        f"{other_ms:,.0f} ms",
        f"{fired / firing_ms * 1000:,.0f}",
        f"{fired / more_ms * 1000:,.0f}" if more_ms else "no difference",
        f"{found['firing_pss'] / MB:,.0f} MB",
        f"{found['other_pss'] / MB:,.0f} MB",
    ]
    return f"| {' | '.join(cells)} |"


def _measure(kind: str, keys: int, cores: int) -> None:
    home = Path(tempfile.mkdtemp(prefix="headrace-firing-"))
    watch = _Watch(keys)
    try:
        watch.follow(_pipeline(kind, home, keys, cores).start())
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(json.dumps(watch.found()))


class _Watch:
    """Follows a job epoch by epoch: which fired, how long each took, the most memory in each."""

    def __init__(self, keys: int) -> None:
        self._keys = keys
        self._fired: dict[int, int] = {}
        self._took_ms: dict[int, int] = {}
        self._pss: dict[int, int] = defaultdict(int)
        self._sampling = threading.Event()

    def follow(self, job: hr.JobHandle) -> None:
        out = 0
        while job.await_epoch(job.epoch + 1):
            seen = job.summary
            now = seen.counts.get("per-account", {}).get("out", 0)
            self._fired[seen.epoch], out = now - out, now
            for progress in job.spark_progress:
                self._took_ms[int(progress["batchId"])] = progress["durationMs"]["triggerExecution"]
            if len(self._firings()) == WARMING + TIMED and not self._sampling.is_set():
                self._sampling.set()
                threading.Thread(target=self._sample, args=(job,), daemon=True).start()
            if len(self._firings()) > WARMING + TIMED + SAMPLED:
                break
        self._sampling.clear()
        job.stop()

    def _sample(self, job: hr.JobHandle) -> None:
        while self._sampling.is_set():
            epoch = job.epoch + 1
            self._pss[epoch] = max(self._pss[epoch], memory_use(os.getpid()).pss)
            threading.Event().wait(SAMPLE_S)

    def _firings(self) -> list[int]:
        return [epoch for epoch, fired in sorted(self._fired.items()) if fired >= self._keys]

    def found(self) -> dict[str, float]:
        """Medians of the epochs that count, and the most memory of both kinds of epochs."""
        firings = self._firings()
        timed = firings[WARMING : WARMING + TIMED]
        others = [e for e in range(firings[0] + 1, timed[-1]) if e not in firings]
        sampled = set(firings[WARMING + TIMED :])
        # The first sampled epoch was not watched from its beginning.
        watched = sorted(self._pss)[1:]
        return {
            "fired": statistics.median(self._fired[e] for e in timed),
            "firing_ms": statistics.median(self._took_ms[e] for e in timed),
            "other_ms": statistics.median(self._took_ms[e] for e in others),
            "firing_pss": max(self._pss[e] for e in watched if e in sampled),
            "other_pss": max(self._pss[e] for e in watched if e not in sampled),
        }


def _pipeline(kind: str, home: Path, keys: int, cores: int) -> hr.Environment:
    def events(start: int, end: int) -> pa.RecordBatch:
        number = np.arange(start, end, dtype=np.int64)
        window, place = np.divmod(number, keys)
        time_us = FIRST_US + window * 10_000_000 + place * 1_000_000 // keys
        account = (number * 7919 + 13) % keys
        return pa.record_batch([account, number % 100, time_us.view("datetime64[us]")], EVENTS)

    env = hr.Environment(
        "firing",
        checkpoint=home / "checkpoint",
        shards=cores,
        master=f"local[{cores}]",
        epochs=hr.Epochs(rows=min(EPOCH_ROWS, keys // 4)),
    )
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("ts")
    source = generator.Function(EVENTS, events, rows=None)
    env.from_source(source, watermarks=strategy, uid="events").key_by("account").window(
        KINDS[kind]()
    ).aggregate(events=hr.count(), total=hr.sum("amount"), uid="per-account").sink_to(
        files.FileSink(home / "out"), uid="results"
    )
    return env


if __name__ == "__main__":
    main()
