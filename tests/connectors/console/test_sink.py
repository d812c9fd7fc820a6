"""Rows on the terminal."""

import io
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.connectors.console import ConsoleSink
from headrace.endpoints import Receipt, SinkContext
from headrace.errors import BuildError

SCHEMA = pa.schema({"name": pa.string(), "n": pa.int64(), "at": pa.timestamp("us", tz="UTC")})


def owner(tmp_path: Path) -> SinkContext:
    return SinkContext("job", "one", "screen", SCHEMA, tmp_path / "spool")


def stage(sink: ConsoleSink, tmp_path: Path, epoch: int, count: int) -> list[Receipt]:
    stager = pickle.loads(pickle.dumps(sink)).stager(owner(tmp_path), epoch, "task")
    at = datetime(2025, 1, 1, tzinfo=UTC)
    rows = [{"name": "[red]x" * (n + 1), "n": 10**n, "at": at if n else None} for n in range(count)]
    stager.write(pa.RecordBatch.from_pylist(rows, SCHEMA))
    return list(stager.close())


def test_rows_are_aligned_and_nothing_in_them_is_markup(tmp_path: Path) -> None:
    screen = io.StringIO()
    sink = ConsoleSink(file=screen)
    sink.publisher(owner(tmp_path)).publish(3, stage(sink, tmp_path, 3, 2))
    lines = [line.rstrip() for line in screen.getvalue().splitlines()]
    assert lines == [
        "screen: epoch 3, 2 rows",
        "name           n  at",
        "[red]x         1  -",
        "[red]x[red]x  10  2025-01-01 00:00:00+00:00",
    ]


def test_only_the_first_rows_are_shown_and_the_rest_is_counted(tmp_path: Path) -> None:
    screen = io.StringIO()
    sink = ConsoleSink(limit=2, file=screen)
    sink.publisher(owner(tmp_path)).publish(0, stage(sink, tmp_path, 0, 5))
    assert len(screen.getvalue().splitlines()) == 5
    assert "... and 3 more" in screen.getvalue()


def test_an_epoch_without_rows_prints_nothing(tmp_path: Path) -> None:
    screen = io.StringIO()
    ConsoleSink(file=screen).publisher(owner(tmp_path)).publish(0, [])
    assert screen.getvalue() == ""


def test_a_staged_epoch_goes_when_the_next_one_is_shown(tmp_path: Path) -> None:
    sink = ConsoleSink(file=io.StringIO())
    publisher = sink.publisher(owner(tmp_path))
    receipts = [stage(sink, tmp_path, epoch, 1) for epoch in range(2)]
    paths = [tmp_path / "spool" / receipt.path for (receipt,) in receipts]
    publisher.publish(0, receipts[0])
    assert paths[0].exists()
    publisher.publish(1, receipts[1])
    assert [path.exists() for path in paths] == [False, True]


def test_standard_output_is_the_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sink = ConsoleSink()
    sink.publisher(owner(tmp_path)).publish(0, stage(sink, tmp_path, 0, 1))
    assert "epoch 0, 1 row\n" in capsys.readouterr().out


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(BuildError, match="limit"):
        ConsoleSink(limit=0)
