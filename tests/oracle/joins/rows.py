"""Keys of rows that are joined, and the rows that come of it, as their step says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace._graph.join_nodes import JoinStep
from headrace.testing.epochs import SidedRow
from tests.oracle.joins.lookup import same_key

__all__ = ["joined", "null_key_letter", "same_keys"]


def null_key_letter(node: JoinStep, row: SidedRow) -> dict[str, Any] | None:
    """What a dead letter says of a row with a null in its key; None of any other row."""
    missing = [name for name in node.keys[row.side] if row.fields[name] is None]
    cause = ", ".join(f"null key '{name}'" for name in missing)
    return {"cause": cause, "payload": dict(row.fields)} if missing else None


def same_keys(node: JoinStep, one: SidedRow, other: SidedRow) -> bool:
    """Whether two rows have the same key, whichever side they are of."""
    names = zip(node.keys[one.side], node.keys[other.side], strict=True)
    return all(same_key(one.fields[mine], other.fields[theirs]) for mine, theirs in names)


def joined(node: JoinStep, sides: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of a result; those of sides that are not there are null."""
    made = {}
    for column in node.columns:
        found = [sides[side][name] for side, name in column.origins if side in sides]
        made[column.name] = next((value for value in found if value is not None), None)
    return made
