"""Rows on the terminal, an aligned table for each epoch that has any.

A terminal cannot take back what it showed: after a crash the last epoch may be printed again.
"""

import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.types as pt
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headrace._commit.spool import SpoolStager, discard_spool, read_spool
from headrace.endpoints import Publisher, Receipt, Sink, SinkContext, Stager
from headrace.errors import BuildError

__all__ = ["ConsoleSink"]


class ConsoleSink(Sink):
    """Print the first `limit` rows of every epoch and how many more there were.

    `file` is a text stream of the program that runs the job; standard output if it is absent.

        stream.sink_to(ConsoleSink(limit=10), uid="screen")
    """

    def __init__(self, limit: int = 20, file: TextIO | None = None) -> None:
        if limit < 1:
            raise BuildError(f"limit must be at least 1 row, not {limit!r}")
        self._limit = limit
        self._file = file

    def __getstate__(self) -> dict[str, Any]:
        """An open stream does not travel; workers do not print."""
        return {"_limit": self._limit, "_file": None}

    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        """Rows go through the spool."""
        return SpoolStager(context, epoch, task)

    def publisher(self, context: SinkContext) -> Publisher:
        """The side that prints."""
        return _ConsolePublisher(context, self._limit, self._file)


class _ConsolePublisher(Publisher):
    def __init__(self, context: SinkContext, limit: int, file: TextIO | None) -> None:
        self._context = context
        self._limit = limit
        self._file = file
        self._done: list[Path] = []

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        ordered = sorted(receipts, key=lambda receipt: receipt.path)
        spool = self._context.spool
        tables = [read_spool(spool, receipt) for receipt in ordered]
        if tables:
            self._print(epoch, pa.concat_tables(tables))
        # The epoch before is noted as published by now; this one is not, and a crash may ask for it.
        for directory in self._done:
            shutil.rmtree(directory, ignore_errors=True)
        self._done = list({(spool / receipt.path).parent for receipt in receipts})

    def discard(self, keep: frozenset[int]) -> None:
        discard_spool(self._context.spool, keep)

    def _print(self, epoch: int, rows: pa.Table) -> None:
        console = Console(file=self._file or sys.stdout, highlight=False, soft_wrap=True)
        noun = "row" if rows.num_rows == 1 else "rows"
        console.print(Text(f"{self._context.uid}: epoch {epoch}, {rows.num_rows:,} {noun}"))
        console.print(_table(rows.slice(0, self._limit)))
        if rows.num_rows > self._limit:
            console.print(Text(f"... and {rows.num_rows - self._limit:,} more"))


def _table(rows: pa.Table) -> Table:
    """Numbers to the right, the rest to the left, nothing cut off."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for field in rows.schema:
        is_number = pt.is_integer(field.type) or pt.is_floating(field.type)
        right = is_number or pt.is_decimal(field.type)
        table.add_column(Text(field.name), justify="right" if right else "left", no_wrap=True)
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        table.add_row(*(Text(_shown(value)) for value in row))
    return table


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
