"""The joins of a stream, with keys or without: each returns a stream of its results, with the outputs of late rows.

Which one to take: two rows of one moment, `window_join` or `interval_join`; a row and what was true at its time,
`join_versioned` or `join_asof`; a row and a table outside, `join_lookup`; a row and a small table that changes,
`join(table.broadcast())`; all of two streams, for ever or for a time, `join`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from headrace._graph.graph import Graph
from headrace._graph.join_columns import SUFFIX
from headrace._graph.join_nodes import Direction, How
from headrace._graph.nodes import OnError, Port
from headrace.expressions import Expression
from headrace.windows import Assigner

if TYPE_CHECKING:
    from headrace.joined import IntervalJoinStreams, JoinResult

__all__ = ["JoinSteps", "RowTime"]

_Names = str | Sequence[str] | None
_OnLate = Literal["side_output", "drop"]


@dataclass(frozen=True)
class RowTime:
    """The event time of the rows of a stream, for `join_versioned(..., at=orders.time)`."""

    port: Port
    graph: Graph = field(repr=False)


class JoinSteps:
    """What streams and keyed streams have in common: they can be joined. The keys of keyed streams need not be said."""

    _graph: Graph
    _port: Port

    @property
    def time(self) -> RowTime:
        """The event time of the rows, for `join_versioned`."""
        return RowTime(self._port, self._graph)

    def join(
        self,
        right: Any,
        *others: Any,
        on: _Names = None,
        left_on: _Names = None,
        right_on: _Names = None,
        how: How = "inner",
        where: Expression | None = None,
        ttl: timedelta | Sequence[timedelta | None] | None = None,
        forever: bool = False,
        suffix: str = SUFFIX,
        uid: str | None = None,
    ) -> JoinResult:
        """All pairs of rows with the same key, whenever they came; further streams of that key join in the same step.

        Outer and anti joins, and those of streams that carry changes, have the column `change`: a result that is no longer
        true is withdrawn. `where` is a condition on the columns of a pair, for inner joins. State: all rows of all
        streams, each for `ttl` by the clock behind its arrival (one for all, or one each), or for ever, which
        `forever=True` says is meant. A row that has run out finds no more partners; results that it is in stay, and nobody
        is shown alone for it. `right` may be `table.broadcast()`: then every shard has the last row of each key of it.

            orders.join(customers.key_by("id").last(), left_on="customer", right_on="id", uid="with-customer")
        """
        from headrace.connected import BroadcastStream

        if isinstance(right, BroadcastStream):
            from headrace.joined_broadcast import add_broadcast_join

            options = {
                "where": where,
                "ttl": ttl,
                "others": others or None,
                "forever": forever or None,
            }
            return add_broadcast_join(
                self, right, (on, left_on, right_on), how, options, suffix=suffix, uid=uid
            )
        from headrace.joined_regular import add_regular_join

        return add_regular_join(
            [self, right, *others],
            (on, left_on, right_on),
            how=how,
            where=where,
            ttl=ttl,
            forever=forever,
            suffix=suffix,
            uid=uid,
        )

    def window_join(
        self,
        right: Any,
        window: Assigner,
        *,
        on: _Names = None,
        left_on: _Names = None,
        right_on: _Names = None,
        how: How = "inner",
        allowed_lateness: timedelta = timedelta(0),
        on_late: _OnLate = "side_output",
        suffix: str = SUFFIX,
        uid: str | None = None,
    ) -> JoinResult:
        """Pairs of rows with the same key in the same window, when the window is over.

        Results have `window_start` and `window_end`. With `allowed_lateness` rows that come later make further pairs, and
        outer and anti joins withdraw what a late partner has made untrue: they have the column `change`. A row that is
        too late for all its windows goes to `late_left` or `late_right`. State: the rows of open windows.

            clicks.window_join(views, hr.windows.Tumbling(timedelta(minutes=1)), on="user", uid="seen-and-clicked")
        """
        from headrace.joined_windows import add_window_join

        return add_window_join(
            self,
            right,
            (on, left_on, right_on),
            window,
            how=how,
            allowed_lateness=allowed_lateness,
            on_late=on_late,
            suffix=suffix,
            uid=uid,
        )

    def co_group(
        self,
        right: Any,
        window: Assigner,
        function: Callable[..., Any],
        *,
        on: _Names = None,
        left_on: _Names = None,
        right_on: _Names = None,
        schema: Any = None,
        allowed_lateness: timedelta = timedelta(0),
        uid: str | None = None,
    ) -> Any:
        """What a function makes of all rows of a key and window, of both streams: it may find a side empty.

        It is called as `function(key, window, left_rows, right_rows)` and yields rows; their columns come from its
        annotation or from `schema`. State: the rows of open windows.
        """
        from headrace.joined_windows import add_co_group

        return add_co_group(
            self,
            right,
            (on, left_on, right_on),
            window,
            function,
            schema=schema,
            allowed_lateness=allowed_lateness,
            uid=uid,
        )

    def interval_join(
        self, right: Any, *, on: _Names = None, left_on: _Names = None, right_on: _Names = None
    ) -> IntervalJoinStreams:
        """Pairs of rows with the same key whose times are near each other; `between(...)` says how near.

        orders.interval_join(payments, on="order").between(timedelta(0), timedelta(hours=1), uid="paid")
        """
        from headrace.joined import IntervalJoinStreams, two_sides

        return IntervalJoinStreams(two_sides(self, right, (on, left_on, right_on)))

    def join_versioned(
        self,
        right: Any,
        *,
        on: _Names = None,
        left_on: _Names = None,
        right_on: _Names = None,
        at: RowTime | None = None,
        how: Literal["inner", "left"] = "inner",
        on_late: _OnLate = "side_output",
        suffix: str = SUFFIX,
        uid: str | None = None,
    ) -> JoinResult:
        """Each row beside the version of its key that was valid at its event time.

        The right is a stream of versions: each holds from its event time until the next of its key, or until a row whose
        `change` is "-D". A row waits until the watermark has passed it, so that the version is final. State: the rows
        that wait, and of each key the versions from the one that is valid at the watermark on.

            orders.join_versioned(rates, on="currency", at=orders.time, uid="in-euros")
        """
        from headrace.joined import add_versioned_join

        sides = (on, left_on, right_on)
        return add_versioned_join(
            self, right, sides, at, how=how, on_late=on_late, suffix=suffix, uid=uid
        )

    def join_asof(
        self,
        right: Any,
        *,
        on: _Names = None,
        left_on: _Names = None,
        right_on: _Names = None,
        direction: Direction = "backward",
        tolerance: timedelta | None = None,
        allow_exact_matches: bool = True,
        how: Literal["left", "inner"] = "left",
        on_late: _OnLate = "side_output",
        suffix: str = SUFFIX,
        uid: str | None = None,
    ) -> JoinResult:
        """Each row beside the right row of its key that is nearest in event time.

        "backward": the last at or before it, "forward": the first at or behind it, "nearest": whichever is nearer, the
        earlier of two. It is not further away than `tolerance`, which the last two need: a row waits until the
        watermark is that far behind it. State: the rows that wait, and right rows that one to come may be nearest to.

            trades.join_asof(quotes, on="symbol", tolerance=timedelta(seconds=2), uid="with-quote")
        """
        from headrace.joined import add_asof_join

        return add_asof_join(
            self,
            right,
            (on, left_on, right_on),
            direction=direction,
            tolerance=tolerance,
            exact=allow_exact_matches,
            how=how,
            on_late=on_late,
            suffix=suffix,
            uid=uid,
        )

    def join_lookup(
        self,
        table: Any,
        *,
        on: _Names = None,
        how: Literal["left", "inner"] = "left",
        schema: Any = None,
        suffix: str = SUFFIX,
        on_error: OnError = "fail",
        uid: str | None = None,
    ) -> JoinResult:
        """Each row beside what a table outside has for its key: a `LookupFunction`, a `FileTable` or a function of keys.

        One call asks for each distinct key of a batch once. The columns of the table come from `schema`, or from the table
        itself. With `on_error="dead_letter"` a row whose key cannot be looked up goes to `errors`. No state.

            orders.join_lookup(PostgresLookup(...), on="customer", uid="with-customer")
        """
        from headrace.joined_lookup import add_lookup_join

        return add_lookup_join(
            self, table, on, how=how, schema=schema, suffix=suffix, on_error=on_error, uid=uid
        )
