"""Process functions without keys: any number of rows for each row, to any number of outputs.

Results have the timestamp and the origin of the row that they come from. All that a row has made is undone if the
function fails on it, wherever that happens.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from types import GeneratorType
from typing import Any, NoReturn

from headrace._graph import nodes
from headrace._graph.nodes import MAIN
from headrace._runtime.columns import row_objects
from headrace._runtime.detached import detached
from headrace._runtime.failures import Failures, Made
from headrace._runtime.lifecycle import opened, working
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Outputs, StatelessOperator, Surroundings
from headrace._runtime.process.context import instant
from headrace._runtime.process.results import refuse_single, undeclared
from headrace._runtime.rows import Rows
from headrace._runtime.rowwise import built, descendants
from headrace._runtime.watchdog import IDLE, watching
from headrace.errors import UserCodeError
from headrace.outputs import OutputTag
from headrace.process_functions import CoProcessFunction
from headrace.watermarks import NO_WATERMARK

__all__ = ["RowContext", "RowProcess"]


class RowContext:
    """What a function is told of the row at hand. There are no keys here, hence no state and no timers."""

    __slots__ = ("_around", "_stamps", "output", "place", "uid")

    def __init__(self, uid: str, around: Surroundings, output: Callable[[Any, Any], None]) -> None:
        self._around = around
        self._stamps: Any = None
        #: The number of the row in its batch; `IDLE` outside of calls.
        self.place = IDLE
        #: Give a row to a side output.
        self.output = output
        self.uid = uid

    def turn_to(self, rows: Rows) -> None:
        """Calls with these rows follow."""
        self._stamps = rows.timestamps

    @property
    def timestamp(self) -> datetime | None:
        """That of the row; None if rows have none."""
        if self._stamps is None or self.place == IDLE:
            return None
        return instant(int(self._stamps[self.place]))

    @property
    def watermark(self) -> datetime | None:
        """That of the step; None before the first."""
        reached = self._around.watermark
        return None if reached == NO_WATERMARK else instant(reached)

    @property
    def clock(self) -> datetime:
        """That of the epoch."""
        return instant(self._around.clock)

    @property
    def shard(self) -> int:
        """The number of the task."""
        return self._around.task

    @property
    def metrics(self) -> Metrics:
        """Counters, gauges and histograms of the step."""
        return self._around.metrics

    def __getattr__(self, name: str) -> NoReturn:
        if name in _OF_KEYS:
            raise UserCodeError(
                f"The code of step '{self.uid}' asks for ctx.{name}, but it has no keys, and so no state and no timers;"
                " use key_by(...).process(...) with an hr.KeyedProcessFunction."
            )
        raise AttributeError(f"the context of a process function has no attribute {name!r}")


_OF_KEYS = (
    "key",
    "timers",
    "time_domain",
    "get_state",
    "get_list_state",
    "get_map_state",
    "get_reducing_state",
    "get_aggregating_state",
)


#: What need not be looked at to know that it is many rows.
_MANY = (GeneratorType, list)


class RowProcess(StatelessOperator):
    """Calls the function once a row of one input, in order."""

    def __init__(self, node: nodes.RowProcess, side: int = 0) -> None:
        self._node = node
        self._sides = dict(node.side_outputs)
        self._function = working(node.function)
        two = isinstance(node.function, CoProcessFunction)
        self._method = f"process_element{side + 1}" if two else "process_element"
        self._context: RowContext | None = None
        # working state: by output, results and the rows that they come from
        self._made: dict[str, tuple[list[Any], list[int]]] = {}

    def enter(self, around: Surroundings) -> None:
        self._context = RowContext(self._node.uid, around, self._output)

    def process(self, rows: Rows) -> Outputs:
        context = self._context
        assert context is not None
        call = getattr(opened(self._function, context, self._node.uid), self._method)
        context.turn_to(rows)
        failures = Failures(self._node, rows)
        self._made = {MAIN: ([], [])}
        self._call_each(call, context, rows, failures)
        schema = self._node.output_schema
        made = {
            output: Made(results, parents, partial(built, schema(output)))
            for output, (results, parents) in self._made.items()
        }
        yield from descendants(rows, failures.fit(made))
        yield from failures.outputs()

    def _call_each(
        self, call: Callable[[Any, Any], Any], context: RowContext, rows: Rows, failures: Failures
    ) -> None:
        with watching(self._node.limit_us) as watch:
            for place, row in enumerate(row_objects(rows.batch)):
                watch.call = context.place = place
                try:
                    made = call(row, context)
                    if made is not None:
                        self._take_in(made, place)
                except BaseException as error:  # noqa: BLE001 - user code may raise anything
                    watch.call = IDLE
                    self._undo(place)
                    failures.add(place, error)
            context.place = IDLE

    def _take_in(self, made: Any, place: int) -> None:
        if type(made) not in _MANY:
            refuse_single(made)
        results, parents = self._made[MAIN]
        for row in made:
            if type(row) is tuple and len(row) == 2 and isinstance(row[0], OutputTag):
                self._output(*row)
            else:
                results.append(detached(row))
                parents.append(place)

    def _output(self, tag: Any, row: Any) -> None:
        if not isinstance(tag, OutputTag) or tag.name not in self._sides:
            raise undeclared(tag, self._node.uid, self._sides)
        assert self._context is not None
        if self._context.place == IDLE:
            raise UserCodeError(
                f"The code of step '{self._node.uid}' gave a row to {tag!r} in open or after a call; a row belongs to"
                " the row that it is made of, so give it out in process_element."
            )
        results, parents = self._made.setdefault(tag.name, ([], []))
        results.append(detached(row))
        parents.append(self._context.place)

    def _undo(self, place: int) -> None:
        for results, parents in self._made.values():
            while parents and parents[-1] == place:
                parents.pop()
                results.pop()
