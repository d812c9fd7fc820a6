"""What calls of `window_join` and `co_group` make: one step for aligned windows, a composition for all others.

Windows that follow the rows are kept by the row engine: rows of both sides are tagged and go through one window step, whose
function makes the pairs. Only its uid is the user's; the steps around it have it as the beginning of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, get_args

import pyarrow as pa

from headrace._graph.changes import CHANGE
from headrace._graph.join_columns import check_key_types, joined_columns, result_schema_of
from headrace._graph.join_nodes import How, WindowJoin
from headrace._graph.results import result_schema
from headrace._graph.validate import require_event_time
from headrace._plan.columns import require_gap
from headrace._runtime.joins.window.composed import (
    NULL_KEY,
    Alone,
    AsItCame,
    CoGroup,
    GapOfSide,
    Letters,
    OfSide,
    Pairs,
    ShownBefore,
    Tag,
    Tagging,
    count_null_key,
)
from headrace.config import to_us
from headrace.errors import BuildError
from headrace.expressions import Expression, col
from headrace.joined import JoinResult, On, Sides, add_join, check_choice, refuse_changes, two_sides
from headrace.stream import Stream
from headrace.triggers import count, purging
from headrace.windowed import WindowedStream, WindowResult
from headrace.windows import Assigner, Session, Window, WindowAssigner
from headrace.windows.assigner import check_time

__all__ = ["ComposedJoin", "add_co_group", "add_window_join"]

_INSTANT = pa.timestamp("us", tz="UTC")
_BOUNDS = [pa.field("window_start", _INSTANT), pa.field("window_end", _INSTANT)]


def add_window_join(
    left: Any,
    right: Any,
    on: On,
    window: Any,
    *,
    how: Any,
    allowed_lateness: timedelta,
    on_late: Any,
    suffix: str,
    uid: str | None,
) -> JoinResult:
    """Add a window join."""
    check_choice("how", how, get_args(How))
    check_choice("on_late", on_late, ("side_output", "drop"))
    sides = _checked(left, right, on, window, "window_join")
    lateness_us = to_us(allowed_lateness, "allowed_lateness", positive=False)
    changes = lateness_us > 0 and how in ("left", "right", "full", "anti")
    if isinstance(window, Window) and window.time == "event":
        return add_join(
            WindowJoin, sides, how, on_late=on_late, suffix=suffix, uid=uid, added=_BOUNDS,
            changes=changes, window=window, lateness_us=lateness_us,
        )  # fmt: skip
    if window.merging and lateness_us:
        raise BuildError(
            f"window_join(allowed_lateness=...) is not for windows that merge ({window}): a late row may make another"
            " window of two, and pairs that were shown with the old bounds would be wrong. Leave it out, and see"
            " late_left and late_right; or use co_group, which is called again with all rows."
        )
    columns = joined_columns(sides.schemas, sides.keys, how, suffix=suffix)
    own = [*_BOUNDS, *([pa.field(CHANGE, pa.string())] if changes else [])]
    join = WindowJoin(
        id=-1, uid=uid or "", inputs=(),
        schema=result_schema_of(columns, sides.schemas, own, how=how),
        keys=sides.keys, input_schemas=sides.schemas, how=how, columns=columns, on_late=on_late,
        window=window, lateness_us=lateness_us,
    )  # fmt: skip
    return _Composition(sides, window, lateness_us, on_late, uid).pairs(join)


def add_co_group(
    left: Any,
    right: Any,
    on: On,
    window: Any,
    function: Callable[..., Any],
    *,
    schema: Any,
    allowed_lateness: timedelta,
    uid: str | None,
) -> JoinResult:
    """Add a function of all rows of a key and window."""
    if not callable(function):
        raise BuildError(
            f"co_group takes a function of a key, a window, the left rows and the right rows, not {function!r}."
        )
    sides = _checked(left, right, on, window, "co_group")
    lateness_us = to_us(allowed_lateness, "allowed_lateness", positive=False)
    results = result_schema(function, schema, "co_group", many=True)
    return _Composition(sides, window, lateness_us, "side_output", uid).groups(function, results)


class ComposedJoin(JoinResult):
    """The results of a join that is made of several steps, and its other outputs."""

    def __init__(
        self, stream: Stream, made_of: list[WindowResult], tagging: Tagging, uid: str | None
    ) -> None:
        super().__init__(stream._graph, stream._port)  # noqa: SLF001 - of this class
        self._made_of = made_of
        self._tagging = tagging
        self._uid = uid

    @cached_property
    def late_left(self) -> Stream:
        """Rows of the left that came too late, as they were."""
        return self._late_rows(0)

    @cached_property
    def late_right(self) -> Stream:
        """Rows of the right that came too late, as they were."""
        return self._late_rows(1)

    @cached_property
    def errors(self) -> Stream:
        """Dead letters: rows that cannot be used, as they were."""
        letters = _united([step.errors for step in self._made_of], _named(self._uid, "errors.both"))
        return letters.map_batches(
            Letters(self._tagging), schema=letters.schema, uid=_named(self._uid, "errors")
        )

    def _late_rows(self, side: int) -> Stream:
        name = ("late_left", "late_right")[side]
        late = _united([step.late for step in self._made_of], _named(self._uid, f"{name}.both"))
        mine = late.filter(col("side") == side, uid=_named(self._uid, f"{name}.tagged"))
        schema = self._tagging.schemas[side]
        return mine.map_batches(AsItCame(schema, side), schema=schema, uid=_named(self._uid, name))


@dataclass(frozen=True)
class _Composition:
    """Both sides in one window step."""

    sides: Sides
    window: Assigner
    lateness_us: int
    on_late: Any
    uid: str | None

    def pairs(self, join: WindowJoin) -> ComposedJoin:
        """The steps of a join."""
        tagging = self._tagging()
        rows = self._tagged(tagging, [join.preserves(side) for side in (0, 1)])
        function = ShownBefore() if self.lateness_us else None
        if not any(map(join.preserves, (0, 1))):
            main = self._windowed(rows, tagging.key_names)
            made = self._process(main, join, Pairs(join), self.uid, function)
            return ComposedJoin(made, [made], tagging, self.uid)
        null = col(NULL_KEY).is_not_null()
        keyed = rows.filter(~null, uid=_named(self.uid, "with_key"))
        main = self._windowed(keyed, tagging.key_names)
        made = self._process(main, join, Pairs(join), self.uid, function)
        alone = rows.filter(null, uid=_named(self.uid, "without_key")).process(
            count_null_key, schema=rows.schema, uid=_named(self.uid, "null_keys")
        )
        once = self._windowed(alone, [NULL_KEY]).trigger(purging(count(1)))
        others = self._process(once, join, Alone(join), _named(self.uid, "alone"), None)
        united = made.union(others, uid=_named(self.uid, "results"))
        return ComposedJoin(united, [made, others], tagging, self.uid)

    def groups(self, function: Callable[..., Any], results: pa.Schema) -> ComposedJoin:
        """The steps of a co-group."""
        tagging = self._tagging()
        rows = self._tagged(tagging, [False, False])
        windowed = self._windowed(rows, tagging.key_names)
        made = windowed.process(CoGroup(function), schema=results, uid=self.uid)
        return ComposedJoin(made, [made], tagging, self.uid)

    def _tagging(self) -> Tagging:
        gap = self.window.gap if isinstance(self.window, Session) else None
        computed = gap if isinstance(gap, str | Expression) else None
        (left, right), (left_keys, right_keys) = self.sides.schemas, self.sides.keys
        return Tagging((left, right), (left_keys, right_keys), computed)

    def _tagged(self, tagging: Tagging, preserved: list[bool]) -> Stream:
        streams = [
            Stream(self.sides.graph, port).map_batches(
                Tag(tagging, side, preserved[side]),
                schema=tagging.schema,
                uid=_named(self.uid, ("left", "right")[side]),
            )
            for side, port in enumerate(self.sides.ports)
        ]
        return streams[0].union(streams[1], uid=_named(self.uid, "both"))

    def _windowed(self, rows: Stream, keys: list[str]) -> WindowedStream:
        windowed = rows.key_by(*keys).window(_of_tagged(self.window)).on_late(self.on_late)
        return windowed.allowed_lateness(timedelta(microseconds=self.lateness_us))

    def _process(
        self,
        windowed: WindowedStream,
        join: WindowJoin,
        batches: Any,
        uid: str | None,
        function: Any,
    ) -> WindowResult:
        return windowed._process(  # noqa: SLF001 - with state beside a function on columns
            join.schema,
            (),
            uid,
            batches=batches,
            function=function,
            emits_changes=join.emits_changes,
        )


def _checked(left: Any, right: Any, on: On, window: Any, verb: str) -> Sides:
    """The sides, if such windows can be made of them."""
    if not isinstance(window, Assigner):
        raise BuildError(
            f"{verb} takes one of hr.windows, for example windows.Tumbling(size), not {window!r}."
        )
    check_time(window.time)
    if not window.timed:
        raise BuildError(
            f"{verb} takes windows that begin and end in time, and a window of {window} does not; take"
            " windows.Tumbling(size), windows.Session(gap) or one of your own. For all that ever came there is join(...)."
        )
    sides = two_sides(left, right, on)
    refuse_changes(sides, (0, 1), verb)
    check_key_types(sides.schemas, sides.keys)
    for port, schema in zip(sides.ports, sides.schemas, strict=True):
        if window.time == "event":
            require_event_time(sides.graph.nodes, port, verb)
        if isinstance(window, Session):
            require_gap(window, schema)
    return sides


def _of_tagged(window: Assigner) -> Assigner:
    """The same windows of tagged rows."""
    if isinstance(window, WindowAssigner):
        return OfSide(window)
    if isinstance(window, Session) and window.gap is not None:
        named = isinstance(window.gap, str | Expression)
        own: Any = window.gap
        gap: Any = "gap" if named else GapOfSide(own)
        return Session.dynamic(gap, time=window.time)
    return window


def _united(streams: list[Stream], uid: str | None) -> Stream:
    first, *others = streams
    return first.union(*others, uid=uid) if others else first


def _named(uid: str | None, part: str) -> str | None:
    """The uid of a step that belongs to another."""
    return None if uid is None else f"{uid}.{part}"
