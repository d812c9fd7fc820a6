"""What calls of `join`, `first`, `last` and `top` make: steps that keep rows for ever, or as long as they are told to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, get_args

from headrace._graph.join_columns import joined_columns, result_schema_of
from headrace._graph.join_nodes import How, Keep, KeepRow, RegularJoin
from headrace._graph.lint import warn_of_unbounded_join, warn_of_unbounded_rows
from headrace._graph.nodes import Node
from headrace._plan.columns import check_condition
from headrace.config import to_us
from headrace.errors import BuildError, SchemaError
from headrace.expressions import Expression
from headrace.joined import JoinResult, On, Sides, add_join, check_choice, sides_of
from headrace.keys import check_key_type
from headrace.schema import require_field

__all__ = ["add_keep", "add_regular_join", "top_of"]


def add_regular_join(
    streams: Sequence[Any],
    on: On,
    *,
    how: How,
    where: Expression | None,
    ttl: Any,
    forever: bool,
    suffix: str,
    uid: str | None,
) -> JoinResult:
    """Add a regular join."""
    check_choice("how", how, get_args(How))
    if len(streams) > 2 and how not in ("inner", "left"):
        raise BuildError(
            f'A join of {len(streams)} streams is how="inner" or how="left"; join two at a time for how="{how}".'
        )
    sides = sides_of(streams, on)
    ttls = _ttls(ttl, len(streams))
    _check_lives(ttls, forever=forever)
    if len(streams) > 2 and how == "left" and any(ttls[1:]):
        raise BuildError(
            f"A left join of {len(streams)} streams keeps the rows of all but the first for ever: what has run out cannot be"
            " told from what never came where several are missed at once. Give a ttl to the first alone,"
            f" ttl=[timedelta(...){', None' * (len(streams) - 1)}], or join two at a time."
        )
    keeps = _existing(how, sides.changing, ttls)
    changes = any(sides.changing) or how in ("left", "right", "full", "anti")
    _check_where(sides, how, where, suffix)
    result = add_join(
        RegularJoin, sides, how, suffix=suffix, uid=uid, changes=changes,
        changing=sides.changing, keeps=keeps, ttls_us=ttls, condition=where,
    )  # fmt: skip
    if not forever:
        _warn(sides, result, ttls)
    return result


def add_keep(
    stream: Any, keep: Keep, *, ttl: timedelta | None, forever: bool, uid: str | None
) -> JoinResult:
    """Add a step that keeps one row of each key."""
    sides = sides_of([stream], (None, None, None))
    changing = sides.changing[0]
    if changing and keep.rule != "last":
        name = sides.graph.nodes[sides.ports[0].node].uid
        raise BuildError(
            f"'{name}' withdraws earlier results, and {keep.rule}(...) keeps one row of a key, so it could not fall back"
            " on another; use last(), or take it before the step that withdraws."
        )
    for column in keep.by:
        kind = require_field(sides.schemas[0], column, what=keep.rule).type
        if not check_key_type(kind):
            raise SchemaError(
                f"{keep.rule}: rows cannot be ordered by '{column}', which is {kind}."
            )
    ttls = _ttls(ttl, 1)
    _check_lives(ttls, forever=forever)
    result = add_join(
        KeepRow, sides, "inner", suffix="", uid=uid, changes=keep.rule != "first" or changing,
        changing=(changing,), keeps=(keep,), ttls_us=ttls,
    )  # fmt: skip
    if not forever and ttl is None:
        node = sides.graph.nodes[-1]
        keys = [(key, sides.schemas[0].field(key).type) for key in sides.keys[0]]
        warn_of_unbounded_rows(node.uid, node.where, keys, keep.rule)
    return result


def top_of(by: Any, descending: Any) -> Keep:
    """The order of `top`, checked as far as it can be without columns."""
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Sequence) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise BuildError(
            f"top(by={by!r}) needs a column to order rows by, or several: top(['price', 'time'])."
        )
    downs: tuple[Any, ...] = (descending,) * len(names)
    if isinstance(descending, Sequence):
        downs = tuple(descending)
    if len(downs) != len(names) or not all(isinstance(down, bool) for down in downs):
        raise BuildError(
            f"top(by={by!r}, descending={descending!r}): descending is true or false, or one of these for each column."
        )
    return Keep("top", names, downs)


def _existing(
    how: How, changing: Sequence[bool], ttls: Sequence[int | None]
) -> tuple[Keep | None, ...]:
    """Of the right of a semi or anti join one row of a key is enough to know that there is one."""
    exists = how in ("semi", "anti") and not changing[1] and ttls[1] is None
    return (None, *([Keep("first") if exists else None] * (len(changing) - 1)))


def _check_lives(ttls: Sequence[int | None], *, forever: bool) -> None:
    if forever and None not in ttls:
        raise BuildError(
            "forever=True says that rows are kept for ever on purpose, and ttl= that none is: leave one of them out."
        )


def _ttls(ttl: Any, inputs: int) -> tuple[int | None, ...]:
    listed = tuple(ttl) if isinstance(ttl, list | tuple) else (ttl,) * inputs
    if len(listed) != inputs:
        raise BuildError(
            f"ttl={ttl!r} names {len(listed)} times for {inputs} streams: pass one for all, or one each (None: for ever)."
        )
    return tuple(None if one is None else to_us(one, "ttl") for one in listed)


def _check_where(sides: Sides, how: How, where: Any, suffix: str) -> None:
    if where is None:
        return
    if how != "inner":
        raise BuildError(
            f'join(where=...) is for inner joins: in a how="{how}" join it would be unclear whether it makes a row'
            " lonely or removes it. Filter the streams before, or the results behind."
        )
    if not isinstance(where, Expression):
        raise BuildError(
            f"join(where=...) takes an expression on the columns of the result, such as hr.col('a') < hr.col('b'),"
            f" not {where!r}."
        )
    columns = joined_columns(sides.schemas, sides.keys, how, suffix=suffix, changing=sides.changing)
    check_condition(where, result_schema_of(columns, sides.schemas), "join(where=...)")


def _warn(sides: Sides, result: JoinResult, ttls: Sequence[int | None]) -> None:
    join = sides.graph.nodes[-1]
    assert isinstance(join, RegularJoin)
    nodes = [sides.graph.nodes[port.node] for port in sides.ports]
    growing = [
        (node.uid, keep is not None)
        for node, keep, ttl in zip(nodes, join.keeps, ttls, strict=True)
        if ttl is None and not _replaces_its_rows(node)
    ]
    warn_of_unbounded_join(
        result.uid,
        join.where,
        [uid for uid, once in growing if not once],
        [uid for uid, once in growing if once],
    )


def _replaces_its_rows(node: Node) -> bool:
    """Whether a join has no more rows of it than it has keys, of which it warns itself. What runs out there stays here."""
    return isinstance(node, KeepRow) and node.ttls_us == (None,)
