"""The columns of a join's result: those of the left, then those of the others, shared keys once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from headrace._graph.changes import CHANGE
from headrace._graph.join_nodes import How, JoinColumn
from headrace._graph.validate import check_columns
from headrace.errors import BuildError, SchemaError

__all__ = ["SUFFIX", "check_key_types", "joined_columns", "result_schema_of"]

#: What a column of the right is called behind its name if that is taken.
SUFFIX = "_right"


def joined_columns(
    schemas: Sequence[pa.Schema],
    keys: Sequence[Sequence[str]],
    how: How,
    *,
    suffix: str = SUFFIX,
    changing: Sequence[bool] = (),
) -> tuple[JoinColumn, ...]:
    """Where each column of a result comes from. `changing`: inputs whose column `change` is no value."""
    if how in ("semi", "anti"):
        schemas = schemas[:1]
    found: dict[str, list[tuple[int, str]]] = {}
    for side, schema in enumerate(schemas):
        for name in schema.names:
            if name == CHANGE and side < len(changing) and changing[side]:
                continue
            if side and _is_shared(name, side, keys):
                found[name].append((side, name))
                continue
            found[_free_name(name, side, found, schema.names, suffix)] = [(side, name)]
    return tuple(JoinColumn(name, tuple(origins)) for name, origins in found.items())


def result_schema_of(
    columns: Iterable[JoinColumn],
    schemas: Sequence[pa.Schema],
    added: Iterable[pa.Field] = (),
    *,
    how: How = "inner",
) -> pa.Schema:
    """The result's schema; `added` stand behind the columns of the inputs. What may be missing may be null."""
    fields = [_field(column, schemas, how) for column in columns]
    taken = {field.name for field in fields}
    for field in added:
        if field.name in taken:
            raise BuildError(
                f"A join adds the column '{field.name}' to its result, but the rows have one already; rename it"
                f" first: select(..., other=hr.col('{field.name}'))."
            )
    return check_columns(pa.schema([*fields, *added]), "The result of a join")


def _field(column: JoinColumn, schemas: Sequence[pa.Schema], how: How) -> pa.Field:
    found = [schemas[side].field(name) for side, name in column.origins]
    sides = {side for side, _ in column.origins}
    always = {"left": 0 in sides, "right": 1 in sides, "full": len(sides) > 1}.get(how, True)
    nullable = not always or any(field.nullable for field in found)
    return found[0].with_name(column.name).with_nullable(nullable)


def check_key_types(schemas: Sequence[pa.Schema], keys: Sequence[Sequence[str]]) -> None:
    """Refuse keys that cannot be compared."""
    told = [
        f"({', '.join(f'{key}: {schema.field(key).type}' for key in mine)})"
        for schema, mine in zip(schemas, keys, strict=True)
    ]
    kinds = [
        [schema.field(key).type for key in mine] for schema, mine in zip(schemas, keys, strict=True)
    ]
    if any(kind != kinds[0] for kind in kinds):
        raise SchemaError(
            f"The keys of a join need the same types, but they are {' and '.join(told)}. Make them alike with"
            " select or map."
        )


def _is_shared(name: str, side: int, keys: Sequence[Sequence[str]]) -> bool:
    """Whether it is a key that the left has under the same name."""
    return name in keys[side] and keys[0][list(keys[side]).index(name)] == name


def _free_name(name: str, side: int, taken: Iterable[str], own: Iterable[str], suffix: str) -> str:
    """The name of a column in the result; `own` are all names of its side."""
    if name not in taken:
        return name
    if not isinstance(suffix, str):
        raise BuildError(f"suffix={suffix!r} must be a text, such as '_right'.")
    other = f"{name}{suffix}" + (str(side) if side > 1 else "")
    if other in taken or other in own or not suffix:
        raise BuildError(
            f"The result of the join would have two columns '{other}'; pass another suffix=, or rename one with select."
        )
    return other
