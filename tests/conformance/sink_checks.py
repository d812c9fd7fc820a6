"""Checks of whole sinks, as functions that a small process can call."""

from pathlib import Path
from typing import Any

import pyarrow.json as pj

from headrace import testing
from headrace.connectors.files import FileSink
from tests.conformance import sinks

__all__ = ["check_file_sink", "check_named"]


def check_named(kind: str, path: Path, inside: int) -> testing.SinkReport:
    """One of `sinks`."""
    sink = getattr(sinks, kind)(path)
    return testing.check_sink(sink, read=lambda: sinks.rows_in(path), inside=inside)


def check_file_sink(folder: Path) -> None:
    """Ours."""

    def read() -> list[dict[str, Any]]:
        files = sorted(folder.glob("*.jsonl"))
        return [row for file in files for row in pj.read_json(file).to_pylist()]

    testing.check_sink(lambda: FileSink(folder, "jsonl"), read=read, inside=2)
