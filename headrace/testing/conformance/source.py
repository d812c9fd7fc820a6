"""`check_source`: positions that keep their meaning.

What makes replay exact is asked directly: any range gives the same rows again, in another process, in other pieces and
behind a crash. Epochs do not cross `cuts`, so ranges do not either.
"""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.endpoints import Enumerator, Source, SourceBatch, Span
from headrace.testing.conformance.travel import Gone, elsewhere, travelled

__all__ = ["SourceReport", "check_source"]

#: As long as `spans` and `durable` may take; the engine's loop waits for them.
_AT_ONCE_S = 1.0
_LOOKS = 5
_ROWS_READ = 20_000


@dataclass(frozen=True)
class SourceReport:
    """What a source has passed."""

    source: str
    partitions: int
    rows: int
    reads: int


def check_source(
    source: Source,
    *,
    splits: int = 12,
    patience: timedelta = timedelta(seconds=10),
    seed: int = 0,
) -> SourceReport:
    """Prove that a source can be read again: the same positions are the same rows, whatever was killed.

    The source must have rows within `patience`. Ranges are read twice, in other processes, behind a crash, and split at
    `splits` random places for each partition. Raises `AssertionError` that says which positions, and what they gave.

        check_source(MySource("readings.db"))
    """
    with tempfile.TemporaryDirectory(prefix="headrace-check-") as directory:
        check = _Check(source, Path(directory), random.Random(seed), patience.total_seconds())
        check.description()
        spans = check.spans()
        for partition, span in spans.items():
            for first, end in _pieces(span):
                check.range(partition, first, end, splits)
                check.narrow(partition, first, end)
        check.restart(spans)
        return SourceReport(type(source).__name__, len(spans), check.rows, check.reads)


@dataclass
class _Check:
    source: Source
    directory: Path
    chance: random.Random
    patience_s: float
    rows: int = 0
    reads: int = 0
    #: By partition and piece, what the first read gave.
    known: dict[tuple[str, int, int], _Reading] = field(default_factory=dict)

    def description(self) -> None:
        """It travels, and says the same of itself over there."""
        copied = travelled(self.source)
        _require(isinstance(self.source.schema, pa.Schema), "schema must be an Arrow schema")
        _require(copied.schema.equals(self.source.schema), "a copy in a worker has another schema")
        told = self.source.signature()
        _require(
            json.loads(json.dumps(told)) == told == copied.signature(),
            f"signature() must be JSON, and the same for a copy: {told!r}",
        )

    def spans(self) -> Mapping[str, Span]:
        """What one run sees: spans grow, and what is finished stays so."""
        enumerator = self.source.enumerator(self.directory)
        try:
            last = self._first_rows(enumerator)
            for _ in range(_LOOKS):
                found = _look(enumerator)
                _compare(last, found, "from one call of spans() to the next")
                last = found
            began = time.monotonic()
            enumerator.durable({name: span.end for name, span in last.items()})
            _require(time.monotonic() - began < _AT_ONCE_S, "durable() must return at once")
            return last
        finally:
            enumerator.close()

    def range(self, partition: str, first: int, end: int, splits: int) -> None:
        """A range gives its rows, again, elsewhere and in pieces."""
        if self.source.row_positions:
            end = min(end, first + _ROWS_READ)
        whole = self._read(partition, first, end)
        self.known[partition, first, end] = whole
        self.rows += len(whole.rows)
        _same(whole, self._read(partition, first, end), f"{partition} [{first}, {end}) read again")
        other = elsewhere(partial(self._read, partition, first, end))
        _same(whole, other, f"{partition} [{first}, {end}) read in another process")
        _require(not self._read(partition, first, first).rows, f"[{first}, {first}) has rows")
        for _ in range(splits if end - first > 1 else 0):
            at = self.chance.randrange(first + 1, end)
            parts = self._read(partition, first, at), self._read(partition, at, end)
            _same(whole, parts[0] + parts[1], f"{partition} [{first}, {end}) split at {at}")

    def narrow(self, partition: str, first: int, end: int) -> None:
        """Leaving columns out changes nothing in the others; what is undecodable may become a row by it."""
        wanted = self.source.schema.names[-1:]
        other = self.source.narrowed(wanted, timestamps=True)
        if other is self.source:
            return
        _require(set(wanted) <= set(other.schema.names), f"narrowed() left out {wanted}")
        if self.source.row_positions:
            end = min(end, first + _ROWS_READ)
        whole = self._read(partition, first, end, wanted)
        if not whole.dead and not whole.skipped:
            narrow = replace(self, source=other)._read(partition, first, end, wanted)  # noqa: SLF001 - of this class
            _same(whole, narrow, f"{partition} [{first}, {end}) narrowed to {wanted}")

    def restart(self, before: Mapping[str, Span]) -> None:
        """A start behind a crash knows the partitions, and its positions mean what they meant."""
        with suppress(Gone):
            elsewhere(partial(_die, self.source, self.directory))
        enumerator = travelled(self.source).enumerator(self.directory)
        try:
            found = _look(enumerator)
            until = time.monotonic() + self.patience_s
            while not _reached(before, found) and time.monotonic() < until:
                time.sleep(0.02)
                found = _look(enumerator)
            _compare(before, found, "behind a restart")
        finally:
            enumerator.close()
        for (partition, first, end), whole in self.known.items():
            again = self._read(partition, first, end)
            _same(whole, again, f"{partition} [{first}, {end}) read behind a restart")

    def _first_rows(self, enumerator: Enumerator) -> Mapping[str, Span]:
        until = time.monotonic() + self.patience_s
        while True:
            found = _look(enumerator)
            if any(span.end > span.first for span in found.values()):
                return found
            ended = bool(found) and all(span.finished for span in found.values())
            _require(
                not ended and time.monotonic() < until, f"there are no rows to check: {dict(found)}"
            )
            time.sleep(0.02)

    def _read(
        self, partition: str, start: int, end: int, names: Sequence[str] | None = None
    ) -> _Reading:
        self.reads += 1
        reading = _Reading([], [])
        where = f"{partition} [{start}, {end})"
        for batch in travelled(self.source).read(partition, start, end, self.directory):
            self._check_batch(batch, partition, where)
            reading += _Reading.of(batch, names)
        if self.source.row_positions:
            _ascending(reading.offsets, start, end, where)
            made = len(reading.rows) + len(reading.dead) + reading.skipped
            _require(made <= end - start, f"{where} has {made} rows: one position is one row")
        return reading

    def _check_batch(self, batch: SourceBatch, partition: str, where: str) -> None:
        rows, schema = batch.batch.num_rows, self.source.schema
        _require(
            batch.batch.schema.equals(schema), f"{where}: columns {batch.batch.schema} not {schema}"
        )
        # Where a position is more than a row, a batch may say more exactly where its rows come from.
        _require(
            batch.partition == partition or not self.source.row_positions,
            f"{where}: the batch says {batch.partition!r}",
        )
        _require(len(batch.offsets) == rows, f"{where}: {len(batch.offsets)} offsets, {rows} rows")
        stamps = batch.timestamps
        _require(
            stamps is not None or not self.source.has_record_timestamps,
            f"{where}: has_record_timestamps, but a batch has no timestamps",
        )
        _require(
            stamps is None or (len(stamps) == rows and stamps.dtype == np.int64),
            f"{where}: timestamps must be int64, one for each of {rows} rows",
        )


@dataclass
class _Reading:
    """What a range gave, as plain values."""

    rows: list[str]
    offsets: list[int]
    timestamps: list[int] = field(default_factory=list)
    dead: list[tuple[int, str]] = field(default_factory=list)
    skipped: int = 0

    @staticmethod
    def of(batch: SourceBatch, names: Sequence[str] | None) -> _Reading:
        stamps = [] if batch.timestamps is None else batch.timestamps.tolist()
        dead = [(letter.offset, letter.payload) for letter in batch.dead]
        shown = batch.batch if names is None else batch.batch.select(names)
        rows = [repr(row) for row in shown.to_pylist()]
        return _Reading(rows, np.asarray(batch.offsets).tolist(), stamps, dead, batch.skipped)

    def __add__(self, other: _Reading) -> _Reading:
        return _Reading(
            self.rows + other.rows,
            self.offsets + other.offsets,
            self.timestamps + other.timestamps,
            self.dead + other.dead,
            self.skipped + other.skipped,
        )


def _look(enumerator: Enumerator) -> dict[str, Span]:
    began = time.monotonic()
    found = dict(enumerator.spans())
    _require(time.monotonic() - began < _AT_ONCE_S, "spans() must return at once")
    for name, span in found.items():
        _require(isinstance(name, str), f"the partition {name!r} must be named by text")
        _require(0 <= span.first <= span.end, f"{name}: {span} does not begin before its end")
        _require(
            list(span.cuts) == sorted(set(span.cuts)), f"{name}: cuts must ascend: {span.cuts}"
        )
    return found


def _compare(before: Mapping[str, Span], now: Mapping[str, Span], when: str) -> None:
    for name, span in before.items():
        _require(name in now, f"the partition {name!r} is gone {when}; there are {sorted(now)}")
        later = now[name]
        _require(
            later.end >= span.end and later.first >= span.first,
            f"{name} falls back {when}: {span} becomes {later}",
        )
        _require(
            not span.finished or (later.finished and later.end == span.end),
            f"{name} was finished and goes on {when}: {span} becomes {later}",
        )


def _reached(before: Mapping[str, Span], now: Mapping[str, Span]) -> bool:
    return all(name in now and now[name].end >= span.end for name, span in before.items())


def _pieces(span: Span) -> Iterator[tuple[int, int]]:
    """The range from cut to cut."""
    inside = [cut for cut in span.cuts if span.start < cut < span.end]
    edges = [span.start, *inside, span.end]
    yield from ((first, end) for first, end in pairwise(edges) if first < end)


def _ascending(offsets: list[int], start: int, end: int, where: str) -> None:
    wrong = [offset for offset in offsets if not start <= offset < end]
    _require(not wrong, f"{where} gave the offset {wrong[:1]}, which is outside of it")
    _require(offsets == sorted(offsets), f"{where}: offsets must ascend, not {offsets[:20]}")


def _same(expected: _Reading, found: _Reading, what: str) -> None:
    for name in ("rows", "offsets", "timestamps", "dead", "skipped"):
        one, two = getattr(expected, name), getattr(found, name)
        _require(one == two, f"{what} gives other {name}: {_difference(one, two)}")


def _difference(one: Any, two: Any) -> str:
    if not isinstance(one, list):
        return f"{one} and {two}"
    at = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), None)
    if at is None:
        return f"{len(one)} and {len(two)} of them"
    return f"number {at} is {one[at]}, then {two[at]}"


def _die(source: Source, directory: Path) -> None:
    """A run that is killed as soon as it has looked."""
    enumerator = travelled(source).enumerator(directory)
    enumerator.spans()
    os.kill(os.getpid(), signal.SIGKILL)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
