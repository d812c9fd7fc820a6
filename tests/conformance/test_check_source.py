"""`check_source` passes sources that are right and finds the mistake in those that are not."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace import testing
from headrace.connectors import (
    Enumerator,
    PolledSource,
    Source,
    SourceBatch,
    Span,
    files,
    generator,
    memory,
)


class Right(PolledSource):
    schema = pa.schema([("n", pa.int64())])
    bounded = True

    def ends(self) -> Mapping[str, int | Span]:
        return {"a": 50, "b": 7}

    def rows(self, partition: str, start: int, end: int) -> pa.Table:
        return pa.table({"n": list(range(start, end))})


COUNTER = iter(range(10**9))


class Changes(Right):
    def rows(self, partition: str, start: int, end: int) -> pa.Table:
        return pa.table({"n": [next(COUNTER) for _ in range(start, end)]})


class DependsOnTheRange(Right):
    def rows(self, partition: str, start: int, end: int) -> pa.Table:
        return pa.table({"n": [n - start for n in range(start, end)]})


class _Altered(Right):
    def alter(self, batch: SourceBatch) -> SourceBatch:
        raise NotImplementedError

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        for batch in super().read(partition, start, end, directory):
            yield self.alter(batch)


class OffsetsFromZero(_Altered):
    def alter(self, batch: SourceBatch) -> SourceBatch:
        return replace(batch, offsets=batch.offsets - batch.offsets[0])


class OffsetsFall(_Altered):
    def alter(self, batch: SourceBatch) -> SourceBatch:
        return replace(batch, offsets=batch.offsets[::-1])


class FewTimestamps(_Altered):
    def alter(self, batch: SourceBatch) -> SourceBatch:
        return replace(batch, timestamps=np.zeros(1, np.int64))


class NoTimestamps(Right):
    has_record_timestamps = True


class _Odd(Enumerator):
    def __init__(self, spans: list[dict[str, Span]]) -> None:
        self.answers = spans

    def spans(self) -> Mapping[str, Span]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Falls(Right):
    answers = ({"a": Span(0, 9)}, {"a": Span(0, 8)})

    def enumerator(self, directory: Path) -> Enumerator:
        return _Odd(list(self.answers))


class Vanishes(Falls):
    answers = ({"a": Span(0, 9), "b": Span(0, 1)}, {"a": Span(0, 9)})


class FinishedGrows(Falls):
    answers = ({"a": Span(0, 9, finished=True)}, {"a": Span(0, 10, finished=True)})


class OtherNames(Right):
    def enumerator(self, directory: Path) -> Enumerator:
        count = len(list(directory.iterdir()))
        (directory / str(count)).touch()
        return _Odd([{f"part-{count}": Span(0, 9)}])


class HoldsALock(Right):
    def __init__(self) -> None:
        self.lock = threading.Lock()


class ShiftedByOne(Right):
    def rows(self, partition: str, start: int, end: int) -> pa.Table:
        return pa.table({"n": list(range(start + 1, end + 1))})


class NarrowsWrongly(Right):
    def narrowed(self, columns: Sequence[str], *, timestamps: bool) -> Source:
        return ShiftedByOne()


class LeavesOutTooMuch(Right):
    def narrowed(self, columns: Sequence[str], *, timestamps: bool) -> Source:
        found = Right()
        found.schema = pa.schema([("other", pa.int64())])
        return found


class HasNothing(Right):
    def ends(self) -> Mapping[str, int | Span]:
        return {"a": 0}


WRONG = [
    (Changes, "read again gives other rows"),
    (DependsOnTheRange, r"split at \d+ gives other rows"),
    (OffsetsFromZero, "outside of it"),
    (OffsetsFall, "must ascend"),
    (FewTimestamps, "timestamps must be int64"),
    (NoTimestamps, "has no timestamps"),
    (Falls, "falls back"),
    (Vanishes, "'b' is gone"),
    (FinishedGrows, "was finished and goes on"),
    (OtherNames, "gone behind a restart"),
    (HoldsALock, "cannot be sent to a worker"),
    (NarrowsWrongly, r"narrowed to \['n'\] gives other rows"),
    (LeavesOutTooMuch, r"narrowed\(\) left out \['n'\]"),
    (HasNothing, "no rows to check"),
]


def test_a_right_source_passes() -> None:
    report = testing.check_source(Right(), splits=12)
    assert (report.source, report.partitions, report.rows) == ("Right", 2, 57)
    assert report.reads > 2 * 12 * 2


def test_our_own_sources_pass(tmp_path: Path) -> None:
    rows = [{"n": n, "m": -n} for n in range(20)]
    testing.check_source(memory.MemorySource([*rows[:5], testing.cut(), *rows[5:]]), splits=3)
    testing.check_source(generator.Nexmark(events=500, partitions=2).bids(), splits=2)
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / f"{name}.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    testing.check_source(
        files.FileSource(tmp_path / "in", format="jsonl", schema=Right.schema), splits=3
    )


@pytest.mark.parametrize(("kind", "words"), WRONG, ids=lambda each: getattr(each, "__name__", ""))
def test_a_mistake_is_found(kind: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        testing.check_source(kind(), splits=3, patience=timedelta(seconds=0.5))
