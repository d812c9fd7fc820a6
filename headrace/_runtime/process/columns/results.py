"""What a function on columns gives to each output, checked and stamped.

A batch with as many rows as the call got has their timestamps, one by one. Any other must say its own: nobody can tell
which row came from which, and a guess would depend on how rows were dealt to shards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import MAIN, KeyedProcess
from headrace._runtime.process.columns.instants import as_micros
from headrace._runtime.process.results import Output, undeclared
from headrace._runtime.rows import Rows
from headrace._runtime.rowwise import as_declared
from headrace.errors import UserCodeError
from headrace.outputs import OutputTag

__all__ = ["BatchResults"]

Integers = npt.NDArray[np.int64]


class BatchResults:
    """The results of an epoch's calls since the last `take`."""

    def __init__(self, node: KeyedProcess) -> None:
        self._node = node
        self._sides = dict(node.side_outputs)
        self._made: list[Output] = []
        self._stamps: Integers | None = None
        self._rows = 0

    def begin(self, rows: int, stamps: Integers | None) -> None:
        """A call with so many rows and these timestamps begins."""
        self._rows, self._stamps = rows, stamps

    def take_in(self, made: Any) -> None:
        """What a call returned or yields."""
        if made is None:
            return
        if isinstance(made, pa.RecordBatch | pa.Table) or _is_pair(made):
            made = [made]
        if not isinstance(made, Iterable) or isinstance(made, str | bytes | dict):
            raise TypeError(
                f"a function on batches returns a RecordBatch, an iterable of them and of `tag, batch` pairs, or None;"
                f" {made!r} is none of these"
            )
        for part in made:
            if _is_pair(part):
                self.output(*part)
            else:
                self.emit(part)

    def emit(self, batch: Any, timestamps: Any = None) -> None:
        """Give out a batch; `timestamps` has one for each row, and is needed if the call got another number of rows."""
        self._add(MAIN, batch, timestamps)

    def output(self, tag: Any, batch: Any, timestamps: Any = None) -> None:
        """Give a batch to a side output."""
        if not isinstance(tag, OutputTag) or tag.name not in self._sides:
            raise undeclared(tag, self._node.uid, self._sides)
        self._add(tag.name, batch, timestamps)

    def take(self) -> list[Output]:
        """All of it."""
        made, self._made = self._made, []
        return made

    def _add(self, name: str, batch: Any, timestamps: Any) -> None:
        declared = as_declared(batch, self._node.output_schema(name))
        if declared.num_rows:
            self._made.append((name, Rows(declared, self._stamped(declared.num_rows, timestamps))))

    def _stamped(self, rows: int, timestamps: Any) -> Integers | None:
        if timestamps is not None:
            return as_micros(timestamps, rows, self._node.uid)
        if self._stamps is None or rows == self._rows:
            return self._stamps
        raise UserCodeError(
            f"The code of step '{self._node.uid}' made {rows} rows of {self._rows}, so their timestamps cannot be told; say"
            " ctx.emit(batch, timestamps=...), or ctx.output(tag, batch, timestamps=...), for example with"
            " ctx.timestamps[chosen] for some of the rows or ctx.key_timestamps for one row a key."
        )


def _is_pair(made: Any) -> bool:
    return isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], OutputTag)
