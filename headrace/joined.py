"""What calls of joins make: the sides and their keys, the step, and the results with their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, get_args

import pyarrow as pa

from headrace._graph.changes import CHANGE, carries_changes
from headrace._graph.graph import Graph
from headrace._graph.join_columns import (
    SUFFIX,
    check_key_types,
    joined_columns,
    result_schema_of,
)
from headrace._graph.join_nodes import AsOfJoin, Direction, How, IntervalJoin, JoinStep, WindowJoin
from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT, Port
from headrace._graph.validate import require_event_time
from headrace._plan.columns import check_keys
from headrace.config import to_us
from headrace.errors import BuildError
from headrace.joins import RowTime
from headrace.keyed import KeyedStream
from headrace.stream import Stream

__all__ = [
    "IntervalJoinStreams",
    "JoinResult",
    "Sides",
    "add_asof_join",
    "add_join",
    "add_versioned_join",
    "check_choice",
    "refuse_changes",
    "sides_of",
    "two_sides",
]

#: Ten thousand years: no two timestamps are further apart.
_LONGEST_US = timedelta(days=3_660_000) // timedelta(microseconds=1)
#: What was passed as on=, left_on=, right_on=.
On = tuple[Any, Any, Any]


class JoinResult(Stream):
    """The results of a join, and its other outputs."""

    @property
    def late_left(self) -> Stream:
        """Rows of the left that came too late, as they were."""
        return self._late(LATE)

    @property
    def late_right(self) -> Stream:
        """Rows of the right that came too late, as they were."""
        return self._late(LATE_RIGHT)

    @property
    def errors(self) -> Stream:
        """Dead letters: rows with a null in their key, which never match, of a side whose rows need a partner."""
        return Stream(self._graph, Port(self._port.node, ERRORS))

    def _late(self, output: str) -> Stream:
        node = self._graph.nodes[self._port.node]
        if not isinstance(node, AsOfJoin | IntervalJoin | WindowJoin):
            raise BuildError(
                f"The join '{node.uid}' has no late rows: it does not go by event time."
            )
        if node.on_late == "drop":
            raise BuildError(
                f"The join '{node.uid}' drops late rows, as on_late=\"drop\" says; without it they are here."
            )
        return Stream(self._graph, Port(node.id, output))


@dataclass(frozen=True)
class Sides:
    """The inputs of a join and their keys."""

    graph: Graph
    ports: tuple[Port, ...]
    keys: tuple[tuple[str, ...], ...]

    @property
    def schemas(self) -> tuple[pa.Schema, ...]:
        """The columns of each."""
        return tuple(map(self.graph.schema, self.ports))

    @property
    def changing(self) -> tuple[bool, ...]:
        """Which of them carry changes."""
        return tuple(carries_changes(self.graph.nodes, port) for port in self.ports)


class IntervalJoinStreams:
    """Two streams for an interval join; `between` says how near their rows are."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides

    def between(
        self,
        lower: timedelta,
        upper: timedelta,
        *,
        lower_inclusive: bool = True,
        upper_inclusive: bool = True,
        how: Literal["inner", "left", "right", "full"] = "inner",
        on_late: Literal["side_output", "drop"] = "side_output",
        suffix: str = SUFFIX,
        uid: str | None = None,
    ) -> JoinResult:
        """Pairs with left + lower <= right <= left + upper, in event time, as soon as both are there.

        A row without a partner comes out of an outer join when the watermark has shown that none can come; its timestamp is
        that moment. A row behind the watermark is late. State: each row until the watermark proves that no
        partner can come.
        """
        check_choice("how", how, ("inner", "left", "right", "full"))
        lower_us = _offset_us(lower, "lower") + (not lower_inclusive)
        upper_us = _offset_us(upper, "upper") - (not upper_inclusive)
        if lower_us > upper_us:
            raise BuildError(
                f"between({lower!r}, {upper!r}): nothing lies between these; lower is the distance of the"
                " earliest right row from the left one, upper that of the last."
            )
        refuse_changes(self._sides, (0, 1), "interval_join")
        return add_join(
            IntervalJoin, self._sides, how, on_late=on_late, suffix=suffix, uid=uid,
            lower_us=lower_us, upper_us=upper_us, timed="interval_join",
        )  # fmt: skip

    def __repr__(self) -> str:
        names = " and ".join(f"'{self._sides.graph.nodes[p.node].uid}'" for p in self._sides.ports)
        return f"IntervalJoinStreams({names})"


def add_versioned_join(
    left: Any,
    right: Any,
    on: On,
    at: Any,
    *,
    how: Any,
    on_late: Any,
    suffix: str,
    uid: str | None,
) -> JoinResult:
    """Add a versioned join."""
    if at is not None and at != left.time:
        told = "the time of another stream" if isinstance(at, RowTime) else repr(at)
        raise BuildError(
            f"join_versioned(at=...) takes the event time of the left stream, for example at=orders.time, not {told}."
            " For the time in another column give rows that time first: assign_timestamps_and_watermarks(...)."
        )
    return _add_asof(two_sides(left, right, on), "join_versioned", how, on_late, suffix, uid)


def add_asof_join(
    left: Any,
    right: Any,
    on: On,
    *,
    direction: Direction,
    tolerance: timedelta | None,
    exact: bool,
    how: Any,
    on_late: Any,
    suffix: str,
    uid: str | None,
) -> JoinResult:
    """Add an as-of join."""
    check_choice("direction", direction, get_args(Direction))
    if tolerance is None and direction != "backward":
        raise BuildError(
            f'join_asof(direction="{direction}") needs a tolerance: without one a row would wait for ever for a'
            " right row that may not come."
        )
    tolerance_us = (
        None if tolerance is None else to_us(tolerance, "join_asof(tolerance=...)", positive=False)
    )
    if tolerance_us == 0 and not exact:
        raise BuildError(
            "join_asof(tolerance=timedelta(0), allow_exact_matches=False) finds nothing: no row is at another time and"
            " not away from it."
        )
    if tolerance_us is not None and tolerance_us > _LONGEST_US:
        raise BuildError(f"join_asof(tolerance={tolerance!r}) is longer than time itself.")
    sides = two_sides(left, right, on)
    return _add_asof(
        sides, "join_asof", how, on_late, suffix, uid,
        direction=direction, tolerance_us=tolerance_us, exact=exact,
    )  # fmt: skip


def _add_asof(
    sides: Sides,
    verb: str,
    how: Any,
    on_late: Any,
    suffix: str,
    uid: str | None,
    **fields: Any,
) -> JoinResult:
    check_choice("how", how, ("inner", "left"))
    refuse_changes(sides, (0,), verb)
    return add_join(
        AsOfJoin, sides, how, on_late=on_late, suffix=suffix, uid=uid, timed=verb,
        versions_end=sides.changing[1], **fields,
    )  # fmt: skip


def add_join(
    step: type[JoinStep],
    sides: Sides,
    how: How,
    *,
    suffix: str,
    uid: str | None,
    on_late: Any = "side_output",
    timed: str | None = None,
    added: Sequence[pa.Field] = (),
    changes: bool = False,
    **fields: Any,
) -> JoinResult:
    """Add a join. `timed`: what needs event time; `added`, and with `changes` the column `change`: behind the others."""
    check_choice("on_late", on_late, ("side_output", "drop"))
    if timed is not None:
        for port in sides.ports:
            require_event_time(sides.graph.nodes, port, timed)
    check_key_types(sides.schemas, sides.keys)
    columns = joined_columns(sides.schemas, sides.keys, how, suffix=suffix, changing=sides.changing)
    own = [*added, *([pa.field(CHANGE, pa.string())] if changes else [])]
    node = sides.graph.add(
        step,
        uid=uid,
        inputs=sides.ports,
        schema=result_schema_of(columns, sides.schemas, own, how=how),
        keys=sides.keys,
        input_schemas=sides.schemas,
        how=how,
        columns=columns,
        on_late=on_late,
        **fields,
    )
    return JoinResult(sides.graph, Port(node.id))


def two_sides(left: Any, right: Any, on: On) -> Sides:
    """The inputs of a join of two streams."""
    return sides_of([left, right], on)


def sides_of(streams: Sequence[Any], on: On) -> Sides:
    """The inputs of a join and their keys: as said, or those of keyed streams."""
    for stream in streams:
        if not isinstance(stream, Stream | KeyedStream):
            raise BuildError(f"A join takes streams or keyed streams, not {stream!r}.")
    places = [(s._graph, s._port) for s in streams]  # noqa: SLF001 - what both kinds of streams have
    graph = places[0][0]
    for other, port in places:
        if other is not graph:
            raise BuildError(
                f"'{other.nodes[port.node].uid}' belongs to another Environment; a job has one."
            )
    keys = _keys(streams, on)
    for stream, mine in zip(streams, keys, strict=True):
        check_keys(mine, stream.schema, "join")
    return Sides(graph, tuple(port for _, port in places), keys)


def refuse_changes(sides: Sides, which: Sequence[int], verb: str) -> None:
    """Refuse inputs whose rows may be withdrawn."""
    for side in which:
        if sides.changing[side]:
            uid = sides.graph.nodes[sides.ports[side].node].uid
            raise BuildError(
                f"'{uid}' withdraws earlier results (it has the column '{CHANGE}'), and {verb} cannot take back what"
                " it has made of them; use join(...), which can, or join what comes before."
            )


def check_choice(option: str, chosen: Any, allowed: Sequence[str]) -> None:
    """Refuse what is not one of the choices."""
    if chosen not in allowed:
        raise BuildError(f"{option}={chosen!r}: choose {', '.join(map(repr, allowed))}.")


def _keys(streams: Sequence[Any], on: On) -> tuple[tuple[str, ...], ...]:
    same, left, right = on
    if same is not None and (left is not None or right is not None):
        raise BuildError(
            "A join takes on= for keys with equal names, or left_on= and right_on=, not both."
        )
    if (left is None) != (right is None):
        raise BuildError("A join takes left_on= and right_on= together.")
    if same is not None:
        return (_names(same),) * len(streams)
    if left is not None:
        found = (_names(left), *([_names(right)] * (len(streams) - 1)))
        if len(found[0]) != len(found[1]):
            raise BuildError(
                f"left_on={left!r} and right_on={right!r} need as many columns as each other."
            )
        return found
    if not all(isinstance(stream, KeyedStream) for stream in streams):
        raise BuildError(
            'A join needs keys: on="id", or left_on= and right_on=, or streams with key_by(...) on all sides.'
        )
    keys = tuple(stream.keys for stream in streams)
    if len({len(mine) for mine in keys}) > 1:
        raise BuildError("The streams of a join need keys of as many columns as each other.")
    return keys


def _names(keys: Any) -> tuple[str, ...]:
    names = (keys,) if isinstance(keys, str) else keys
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise BuildError(
            f"The keys of a join are names of columns, not {keys!r}; for what a function makes of a row call"
            " key_by(function) on both streams."
        )
    return tuple(names)


def _offset_us(distance: Any, name: str) -> int:
    if not isinstance(distance, timedelta):
        raise BuildError(
            f"between({name}={distance!r}): it is a timedelta, negative for what lies before, for example"
            " timedelta(minutes=-5)."
        )
    us = distance // timedelta(microseconds=1)
    if abs(us) > _LONGEST_US:
        raise BuildError(
            f"between({name}={distance!r}): no two rows are that far apart. For all pairs whatever their times use"
            " join(...)."
        )
    return us
