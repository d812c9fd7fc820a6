"""The sinks of one task: opened when the first row comes, closed together, aborted together."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from headrace._graph.nodes import WriteSink
from headrace.endpoints import Receipt, SinkContext, Stager

__all__ = ["Staging"]


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

    def close(self) -> list[Receipt]:
        """Make everything durable."""
        return [receipt for stager in self._stagers.values() for receipt in stager.close()]

    def abort(self) -> None:
        """Forget everything; the attempt failed."""
        for stager in self._stagers.values():
            stager.abort()
