"""Counts lost, doubled and disordered rows from the sinks alone. Shares no code with the engine."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from tests.crash import pipeline

WINDOW_US = 10_000_000


@dataclass(frozen=True)
class Verdict:
    """All zero and equal: nothing was lost, doubled or disordered."""

    lost: int
    doubled: int
    disordered: int
    windows_wrong: int
    late_wrong: int


CLEAN = Verdict(0, 0, 0, 0, 0)


def check(root: Path, rows: int = pipeline.ROWS) -> Verdict:
    """Read the sinks of a finished run over so many rows."""
    expected = Counter((n % pipeline.KEYS, n // pipeline.KEYS) for n in range(rows))
    seen: Counter[tuple[int, int]] = Counter()
    last: dict[int, int] = {}
    disordered = 0
    for path in sorted((root / "raw").glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            seen[row["key"], row["sequence"]] += 1
            disordered += row["sequence"] < last.get(row["key"], -1)
            last[row["key"]] = row["sequence"]
    late = _late(root)
    return Verdict(
        lost=(expected - seen).total(),
        doubled=(seen - expected).total(),
        disordered=disordered,
        windows_wrong=_windows_wrong(root, late, rows),
        late_wrong=(late - expected).total() + sum(count > 1 for count in late.values()),
    )


def _late(root: Path) -> Counter[tuple[int, int]]:
    rows = (
        json.loads(line)
        for path in sorted((root / "late").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    )
    return Counter((row["key"], row["sequence"]) for row in rows)


def _windows_wrong(root: Path, late: Counter[tuple[int, int]], rows: int) -> int:
    """Windows whose last firing is not the count and total of the rows that were not late."""
    wanted: Counter[tuple[int, int]] = Counter()
    totals: Counter[tuple[int, int]] = Counter()
    start_us = int(pipeline.START.timestamp()) * 1_000_000
    for n in range(rows):
        key, sequence = n % pipeline.KEYS, n // pipeline.KEYS
        if not late[key, sequence]:
            at = start_us + n * 10_000 - (120_000_000 if n % 97 == 96 else 0)
            window = at // WINDOW_US * WINDOW_US
            wanted[key, window] += 1
            totals[key, window] += sequence
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    doubled = 0
    for path in sorted((root / "windows").glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            place = (row["key"], int(row["window_start"].timestamp() * 1_000_000))
            result = (row["firing"], row["rows"], row["total"])
            doubled += place in found and found[place][0] >= row["firing"]
            found[place] = max(found.get(place, result), result)
    right = {place: (wanted[place], totals[place]) for place in wanted}
    got = {place: result[1:] for place, result in found.items()}
    return doubled + sum(got.get(p) != right.get(p) for p in {*got, *right})
