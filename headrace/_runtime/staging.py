"""The sinks of one task: opened when the first row comes, closed together, aborted together."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pyarrow as pa

from headrace._graph.nodes import WriteSink
from headrace._runtime.report import TaskReport
from headrace.endpoints import SinkContext, Stager

__all__ = ["Staging"]

LOG = logging.getLogger("headrace.sinks")


class Staging:
    """Stages the rows of one task and one epoch for every sink that they reach."""

    def __init__(self, contexts: Mapping[str, SinkContext], epoch: int, task: str) -> None:
        self._contexts = contexts
        self._epoch = epoch
        self._task = task
        self._stagers: dict[str, Stager] = {}

    def write(self, node: WriteSink, batch: pa.RecordBatch) -> None:
        """Add rows to a sink."""
        stager = self._stagers.get(node.uid)
        if stager is None:
            stager = node.sink.stager(self._contexts[node.uid], self._epoch, self._task)
            self._stagers[node.uid] = stager
        stager.write(batch)

    def close(self, report: TaskReport) -> None:
        """Make everything durable, and report it."""
        for uid, stager in self._stagers.items():
            report.receipts.extend(stager.close())
            report.count(uid, "filtered", stager.left_out)

    def abort(self) -> None:
        """Forget everything; the attempt failed. What failed it is told; a sink that fails here too is not."""
        for uid, stager in self._stagers.items():
            try:
                stager.abort()
            except Exception:
                LOG.exception("sink %r could not forget a task that failed", uid)
