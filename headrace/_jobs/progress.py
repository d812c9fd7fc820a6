"""One line on a terminal that says how far a job is. Nothing where nobody looks."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self, TextIO

from headrace._jobs.handle import JobHandle
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["ProgressLine", "progress_text"]

_EVERY_S = 0.5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProgressLine:
    """Rewrites its line twice a second while the job runs."""

    def __init__(self, handle: JobHandle, stream: TextIO) -> None:
        self._handle = handle
        self._stream = stream
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace progress", daemon=True)

    def __enter__(self) -> Self:
        if self._stream.isatty():
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def _run(self) -> None:
        rows = 0
        while not self._over.wait(_EVERY_S):
            total = self._handle.summary.rows
            self._stream.write("\r\x1b[2K" + progress_text(self._handle, (total - rows) / _EVERY_S))
            self._stream.flush()
            rows = total


def progress_text(handle: JobHandle, rate: float) -> str:
    """Epoch, speed, watermark, late rows."""
    if handle.epoch < 0:
        return "starting Spark ..."
    summary = handle.summary
    mark = min(handle.watermarks.values(), default=NO_WATERMARK)
    return (
        f"epoch {handle.epoch}  {summary.rows:,} rows  {rate:,.0f} rows/s  "
        f"watermark {_instant(mark)}  late {summary.late:,}"
    )


def _instant(mark: int) -> str:
    if mark == NO_WATERMARK:
        return "none yet"
    if mark == END_OF_TIME:
        return "end of input"
    return (_EPOCH + timedelta(microseconds=mark)).strftime("%Y-%m-%d %H:%M:%S")
