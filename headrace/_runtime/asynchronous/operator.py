"""One row for each row, by a coroutine function: many calls at once, all done when the batch is.

So an epoch ends with no call in flight, and there is nothing to save and nothing to lose. The price is that a batch takes
as long as its slowest call. Timestamps and origins go with their rows, also if those go out in another order.
"""

from __future__ import annotations

from functools import partial

from headrace._graph import nodes
from headrace._graph.nodes import MAIN
from headrace._runtime.asynchronous.calls import Calls
from headrace._runtime.asynchronous.loop import open_function, run
from headrace._runtime.columns import row_objects
from headrace._runtime.failures import Failures, Made
from headrace._runtime.operator import Outputs, StatelessOperator
from headrace._runtime.rows import Rows
from headrace._runtime.rowwise import built, descendants
from headrace._runtime.usercode import calling

__all__ = ["MapAsync"]


class MapAsync(StatelessOperator):
    """Calls the function for every row, several at a time."""

    def __init__(self, node: nodes.MapAsync) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        failures = Failures(self._node, rows)
        calls = self._call(rows)
        for index, error in calls.failures.items():
            failures.bury(index, error)
        made = failures.fit({MAIN: self._made(calls)})
        yield from descendants(rows, made)
        yield from failures.outputs()

    def _call(self, rows: Rows) -> Calls:
        node = self._node
        calls = Calls(
            open_function(node.uid, node.function),
            row_objects(rows.batch),
            capacity=node.capacity,
            timeout_us=node.limit_us,
            retry=node.retry,
            is_fatal=self._is_fatal,
        )
        run(calls.run())
        if calls.fatal is not None:
            with calling(node.uid, rows, calls.fatal):
                raise calls.failures[calls.fatal]
        return calls

    def _is_fatal(self, error: BaseException) -> bool:
        late = isinstance(error, TimeoutError)
        return (self._node.on_timeout if late else self._node.on_error) == "fail"

    def _made(self, calls: Calls) -> Made:
        build = partial(built, self._node.schema)
        if self._node.ordered:
            return Made(calls.results, None, build)
        return Made([calls.results[row] for row in calls.finished], calls.finished, build)
