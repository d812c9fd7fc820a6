"""The half of the step behind the shuffle: every row goes through the trigger of each of its windows.

merge (early rows)    judged by the watermark before
tick                  timers up to the watermark and the clock; then windows that are over close and leave
merge                 judged by the watermark
settle                timers that rows set behind the time; what waits for the end of the epoch; late rows
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import LATE, WindowProcess
from headrace._runtime.arrivals import Arrivals
from headrace._runtime.columns import row_objects
from headrace._runtime.operator import KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState
from headrace._runtime.unfolded import TIMESTAMP, join_batches
from headrace._runtime.windows.rows.cells import Cell, Cells
from headrace._runtime.windows.rows.contents import Contents
from headrace._runtime.windows.rows.folded import Folded
from headrace._runtime.windows.rows.functions import Functions, Output
from headrace._runtime.windows.rows.layout import ARRIVAL, Layout
from headrace._runtime.windows.rows.machine import Machine
from headrace._runtime.windows.rows.merging import Sessions
from headrace._runtime.windows.rows.own import own_cells
from headrace._runtime.windows.rows.placing import Incoming, Placed, place_rows
from headrace._runtime.windows.rows.schedule import CLOCK_WHEEL, EVENT_WHEEL
from headrace._runtime.windows.rows.showing import Showing, flush_of
from headrace._runtime.windows.rows.shown import Shown
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["RowsOperator"]

Integers = npt.NDArray[np.int64]


class RowsOperator(KeyedOperator):
    """The cells of one shard."""

    def __init__(self, node: WindowProcess, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._layout = layout = Layout(node)
        self._tree = layout.tree()
        # Checkpointed
        shown = None if layout.shown is None else Shown(node, layout.shown)
        self._cells = Cells(layout, self._tree, state, shown)
        self._contents: Folded | Contents
        if layout.keeps_rows:
            self._contents = Contents(layout, self._cells, state)
        else:
            self._contents = Folded(layout, self._cells)
        called = node.function is not None or node.batches is not None
        self._functions = Functions(layout, state) if called else None
        self._arrivals = Arrivals(state) if layout.numbers_rows else None
        # Of this epoch
        self._showing = Showing(layout, self._functions, shown)
        self._machine = Machine(layout, self._tree, self._cells, self._contents)
        self._sessions = (
            Sessions(layout, self._cells, self._machine, self._contents, state)
            if layout.merging
            else None
        )
        self._waiting: list[pa.RecordBatch] = []
        self._ticked = False
        self._watermark = NO_WATERMARK
        self._settled: list[Output] = []
        self._late: list[pa.RecordBatch] = []

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in. Before the tick they wait for it; where windows merge, all of a phase wait."""
        if not batch.num_rows:
            return
        if self._ticked and self._sessions is None:
            self._settled += self._take(batch)
        else:
            self._waiting.append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Early rows, timers, and the windows that are over."""
        machine = self._machine
        self._watermark = moment.before
        machine.move(moment.before, moment.clock_before)
        outputs = self._take_waiting()
        self._ticked, self._watermark = True, moment.watermark
        machine.move(moment.watermark, moment.clock, moment.before)
        self._cells.due(EVENT_WHEEL, moment.before, moment.watermark)
        if self._tree.has_clock:
            self._cells.due(CLOCK_WHEEL, moment.clock_before, moment.clock)
        machine.run_timers()
        yield from outputs
        yield from self._show()
        if self._node.on_late != "own_window":
            yield from self._late_rows()
        machine.move(moment.watermark, moment.clock)
        if not self._layout.counts:
            self._settled += self._close(machine.over())

    def settle(self) -> Outputs:
        """What follows from the rows, and what waits for the end of the epoch."""
        machine = self._machine
        self._settled += self._take_waiting()
        machine.run_timers()
        if self._tree.settles:
            machine.settle(machine.live(), closing=False)
        self._settled += self._show()
        if self._node.on_late == "own_window":
            self._settled += self._own_windows()
        if self._layout.counts and self._watermark == END_OF_TIME:
            self._settled += self._close(machine.over())
        yield from self._settled
        yield from self._late_rows()
        self._write()
        self._settled, self._ticked = [], False

    def outlook(self) -> Outlook:
        """The next timers."""
        return self._cells.outlook()

    # Rows

    def _take_waiting(self) -> list[Output]:
        waiting, self._waiting = self._waiting, []
        if waiting and self._sessions is not None:
            waiting = [join_batches(waiting)]
        return [output for batch in waiting for output in self._take(batch)]

    def _take(self, batch: pa.RecordBatch) -> list[Output]:
        rows = Incoming(self._layout, batch)
        placed = self._place(rows)
        if len(placed.late):
            self._late.append(batch.take(pa.array(placed.late)))
        if not placed.cells:
            return []
        numbers = None if self._arrivals is None else self._arrivals.count(rows.hashes)
        pool = self._kept(rows, numbers)
        if isinstance(self._contents, Contents):
            self._contents.expect(pool, placed.rows)
        self._machine.add(placed.cells, *self._seen(rows, placed.rows))
        if isinstance(self._contents, Contents):
            return self._show()
        whole = len(placed.rows) == rows.size and not len(placed.late)
        pool = pool if whole and _rises(placed.rows) else pool.take(pa.array(placed.rows))
        return self._show(pool, None if numbers is None else numbers[placed.rows])

    def _place(self, rows: Incoming) -> Placed:
        if self._sessions is not None:
            return self._sessions.place(rows, self._watermark)
        return place_rows(self._layout, self._cells, self._machine, rows, self._watermark)

    def _kept(self, rows: Incoming, numbers: Integers | None) -> pa.RecordBatch:
        """The rows as they are kept, or folded."""
        batch = rows.batch.select([*self._layout.columns.names, TIMESTAMP])
        if ARRIVAL in self._layout.kept.names:
            order = np.arange(rows.size) if numbers is None else numbers + np.arange(rows.size)
            batch = batch.append_column(ARRIVAL, pa.array(order))
        return batch

    def _seen(self, rows: Incoming, places: Integers) -> tuple[list[int | None], list[object]]:
        """For each pair the timestamp and, if a trigger of the user's looks at it, the row."""
        stamps: list[int | None] = (
            rows.timestamps[places].tolist() if rows.timed else [None] * len(places)
        )
        if not self._tree.written:
            return stamps, []
        objects = row_objects(rows.batch.select(self._layout.columns.names))
        return stamps, [objects[place] for place in places.tolist()]

    # Results

    def _show(
        self, rows: pa.RecordBatch | None = None, numbers: Integers | None = None,
        keys: Sequence[pa.Array] | None = None,
    ) -> list[Output]:  # fmt: skip
        """What fired so far. `rows` are those that went into accumulators."""
        firings, self._machine.firings = self._machine.firings, []
        if keys is None:
            keys = self._cells.key_values([firing.cell for firing in firings])
        if isinstance(self._contents, Contents):
            return self._showing.kept(firings, keys, self._contents)
        flush = None if rows is None else flush_of(rows)
        values = self._contents.evaluate(flush, numbers, firings)
        return self._showing.folded(firings, keys, values)

    def _close(self, over: list[Cell]) -> list[Output]:
        """The last firings of windows that are over; then they leave, one after the other."""
        outputs: list[Output] = []
        leaving: list[Cell] = []
        for cell in over:
            self._machine.settle((cell,), closing=True)
            if self._functions is not None and self._machine.firings:
                # A function sees the windows of a key in their order: those before this one are cleared first.
                outputs += self._leave(leaving) + self._show()
                leaving = []
            leaving.append(cell)
        outputs += self._show() + self._leave(leaving)
        if self._sessions is not None:
            self._sessions.close(over, self._watermark)
        return outputs

    def _leave(self, cells: list[Cell]) -> list[Output]:
        closed = self._machine.close(cells)
        if self._functions is None:
            return []
        return self._functions.clear(closed, self._cells.key_values(cells))

    def _own_windows(self) -> list[Output]:
        late, self._late = self._late, []
        if not late:
            return []
        rows = Incoming(self._layout, join_batches(late))
        own = own_cells(self._layout, rows)
        if len(own.left):
            # No window can be made for them, but nothing is lost in silence.
            self._late = [rows.batch.take(pa.array(own.left))]
        if not own.cells:
            return []
        pool = self._kept(rows, None)
        if isinstance(self._contents, Contents):
            self._contents.expect(pool, own.rows)
        for code in own.codes.tolist():
            own.cells[code].rows += 1
            self._contents.add(own.cells[code])
        self._machine.own(own.cells)
        return self._show(
            pool.take(pa.array(own.rows)), np.zeros(len(own.rows), np.int64), own.keys
        )

    def _late_rows(self) -> list[Output]:
        if not self._late:
            return []
        late, self._late = join_batches(self._late), []
        schema = self._node.input_schema
        arrays = [late.column(field.name).cast(field.type) for field in schema]
        stamps = late.column(TIMESTAMP).fill_null(0).to_numpy()
        return [(LATE, Rows(pa.RecordBatch.from_arrays(arrays, schema=schema), stamps))]

    def _write(self) -> None:
        ended = self._watermark == END_OF_TIME
        if self._functions is not None:
            self._functions.close(ended=ended)
        if isinstance(self._contents, Contents):
            self._contents.write()
        self._cells.write()
        if self._arrivals is not None and ended:
            self._arrivals.forget()


def _rises(rows: Integers) -> bool:
    """Every row once, in order."""
    return bool((rows[1:] > rows[:-1]).all())
