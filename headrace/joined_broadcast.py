"""What a join with a broadcast stream makes: rows beside a small table that changes and that every shard has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace._graph.join_nodes import BroadcastJoin, How
from headrace.connected import BroadcastStream
from headrace.errors import BuildError
from headrace.joined import JoinResult, On, add_join, check_choice, refuse_changes, two_sides
from headrace.keyed import KeyedStream
from headrace.stream import Stream

__all__ = ["add_broadcast_join"]


def add_broadcast_join(
    left: Any,
    right: BroadcastStream,
    on: On,
    how: How,
    options: Mapping[str, Any],
    *,
    suffix: str,
    uid: str | None,
) -> JoinResult:
    """Add a broadcast join; `options` are those of a regular join, none of which makes sense here."""
    check_choice("how", how, ("inner", "left"))
    for option, value in options.items():
        if value is not None:
            told = "further streams" if option == "others" else f"{option}="
            raise BuildError(
                f"join(table.broadcast()) takes no {told}: each row meets the one row of its key in the table, as it is"
                " at that moment, and nothing is kept of it. Filter the results, or join again."
            )
    if on == (None, None, None) and isinstance(left, KeyedStream):
        # The table has no keys of its own: those of the left, by name.
        on = (left.keys, None, None)
    table = Stream(right._graph, right._port)  # noqa: SLF001 - a stream of the same rows
    rows = Stream(left._graph, left._port) if isinstance(left, KeyedStream) else left  # noqa: SLF001
    sides = two_sides(rows, table, on)
    refuse_changes(sides, (0,), "join(table.broadcast())")
    return add_join(BroadcastJoin, sides, how, suffix=suffix, uid=uid, changing=sides.changing[1])
