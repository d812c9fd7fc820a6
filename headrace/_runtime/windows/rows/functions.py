"""Calls of window functions: what they see, what they keep, and what becomes of what they yield."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import MAIN, WindowProcess
from headrace._runtime.columns import values
from headrace._runtime.results import build_batch
from headrace._runtime.rows import Rows
from headrace._runtime.rowwise import as_declared
from headrace._runtime.state import ShardState
from headrace._runtime.usercode import Shown, calling
from headrace._runtime.windows.rows.context import instant, shown_watermark, time_window
from headrace._runtime.windows.rows.firing import Firing
from headrace._runtime.windows.rows.globals import GlobalState
from headrace._runtime.windows.rows.layout import Layout
from headrace.errors import UserCodeError
from headrace.outputs import OutputTag
from headrace.windows.assigner import TimeWindow

__all__ = ["Functions", "key_objects"]

Output = tuple[str, Rows]


class FunctionContext:
    """The context of one call."""

    def __init__(self, firing: Firing, key: Any, output: Callable[[Any, Any], None]) -> None:
        self._firing = firing
        self.key = key
        self.output = output
        self.window_state: Any = None
        self.global_state: Any = None

    @property
    def window(self) -> TimeWindow:
        """The window."""
        return time_window(self._firing.cell.start, self._firing.cell.last)

    @property
    def watermark(self) -> datetime | None:
        """The watermark of the step; None before the first."""
        return shown_watermark(self._firing.watermark_us)

    @property
    def clock(self) -> datetime:
        """The clock of the epoch."""
        return instant(self._firing.clock_us)

    @property
    def pane(self) -> str:
        """ "early", "on_time", "late" or "own"."""
        return self._firing.pane

    @property
    def firing(self) -> int:
        """How often this window of this key fired before; behind the end at least once."""
        return self._firing.number


class Functions:
    """The function of one step: called for each firing, in their order."""

    def __init__(self, layout: Layout, state: ShardState) -> None:
        self._node: WindowProcess = layout.node
        self._declared = layout.state
        self._globals = GlobalState(layout, state)
        self._opened = False
        self._made: dict[str, tuple[list[Any], list[int]]] = {}

    def call(
        self, firings: Sequence[Firing], keys: Sequence[pa.Array], given: Sequence[Any]
    ) -> list[Output]:
        """What the function makes of the rows of each firing."""
        self._open()
        owned = self._globals.of(keys)
        batches: list[Output] = []
        for number, (firing, key) in enumerate(zip(firings, self._keys_of(keys), strict=True)):
            context = self._context(firing, key, owned[number])
            with calling(self._node.uid, key=self._shown(key)):
                if self._node.batches is not None:
                    batches += self._call_batch(given[number], context, firing.stamp)
                else:
                    self._call(context, given[number], firing.stamp)
        return [*batches, *self._take()]

    def clear(self, firings: Sequence[Firing], keys: Sequence[pa.Array]) -> list[Output]:
        """These windows are over."""
        function = self._node.function
        if function is None or not firings:
            return []
        self._open()
        owned = self._globals.of(keys)
        for number, (firing, key) in enumerate(zip(firings, self._keys_of(keys), strict=True)):
            with calling(self._node.uid, key=self._shown(key)):
                function.clear(self._context(firing, key, owned[number]))
        return self._take()

    def close(self, *, ended: bool) -> None:
        """The epoch is over; with `ended`, all time."""
        if self._opened and self._node.function is not None:
            with calling(self._node.uid):
                self._node.function.close()
        self._globals.write(ended=ended)

    def _open(self) -> None:
        if not self._opened and self._node.function is not None:
            with calling(self._node.uid):
                self._node.function.open()
        self._opened = True

    def _context(self, firing: Firing, key: Any, owned: list[Any]) -> FunctionContext:
        def output(tag: Any, row: Any) -> None:
            self._put(_known(tag, self._node), row, firing.stamp)

        context = FunctionContext(firing, key, output)
        if self._declared is not None:
            cell = firing.cell
            context.window_state = self._declared.namespace(lambda: cell.state)
            context.global_state = self._declared.namespace(lambda: owned)
        return context

    def _call(self, context: FunctionContext, rows: Any, stamp: int) -> None:
        assert self._node.function is not None
        made = self._node.function.process(context.key, context, rows)
        if made is None:
            return
        if isinstance(made, str | bytes | dict):
            raise TypeError(
                f"process must yield rows or return an iterable of rows, not {made!r}; return [{made!r}]"
            )
        for row in made:
            if isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], OutputTag):
                context.output(*row)
            else:
                self._put(MAIN, row, stamp)

    def _call_batch(self, batch: pa.RecordBatch, context: Any, stamp: int) -> list[Output]:
        assert self._node.batches is not None
        made = as_declared(self._node.batches(batch, context), self._node.schema)
        if not made.num_rows:
            return []
        return [(MAIN, Rows(made, np.full(made.num_rows, stamp, np.int64)))]

    def _put(self, output: str, row: Any, stamp: int) -> None:
        rows, stamps = self._made.setdefault(output, ([], []))
        rows.append(row)
        stamps.append(stamp)

    def _shown(self, key: Any) -> Shown:
        """The key for a message; None where there is none."""
        return (lambda: key) if self._node.keys else None

    def _keys_of(self, keys: Sequence[pa.Array]) -> list[Any]:
        """None where there is no key: nobody chose the one that stands for it."""
        return key_objects(keys) if self._node.keys else [None] * len(keys[0])

    def _take(self) -> list[Output]:
        made, self._made = self._made, {}
        outputs = []
        for output, (rows, stamps) in made.items():
            batch = build_batch(rows, self._node.output_schema(output), self._wrong)
            outputs.append((output, Rows(batch, np.array(stamps, np.int64))))
        return outputs

    def _wrong(self, _: int, what: str) -> UserCodeError:
        return UserCodeError(f"The result of step '{self._node.uid}' does not fit: {what}.")


def key_objects(keys: Sequence[pa.Array]) -> list[Any]:
    """Keys as functions see them: the value, or a tuple of several."""
    if len(keys) == 1:
        return values(keys[0])
    return list(zip(*map(values, keys), strict=True))


def _known(tag: Any, node: WindowProcess) -> str:
    declared = dict(node.side_outputs)
    if isinstance(tag, OutputTag) and tag.name in declared:
        return tag.name
    known = ", ".join(f"'{name}'" for name in declared) or "none"
    raise UserCodeError(
        f"The code of step '{node.uid}' gave a row to the side output {tag!r}, which is not declared; declared"
        f" are: {known}. Declare it: process(..., side_outputs=[tag])."
    )
