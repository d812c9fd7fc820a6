"""Names of tables and columns: read once, quoted always, so that no name can end the statement it stands in.

    revenue             a table of the connection's own schema
    sales.revenue       a table of another one
    "odd.name"."t"      double quotes for names with points; "" is one quote

Names mean exactly what they say: nothing is folded to lower case. Longer ones than the server keeps are refused,
because it would cut them in silence.
"""

import re
from dataclasses import dataclass

from headrace.errors import BuildError

__all__ = ["TableName", "check_name", "parse_table"]

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@dataclass(frozen=True, slots=True)
class TableName:
    """A table, in the schema it is said to be in."""

    table: str
    schema: str | None = None

    def __str__(self) -> str:
        return self.table if self.schema is None else f"{self.schema}.{self.table}"


def parse_table(text: object, option: str, *, longest: int) -> TableName:
    """The table that a user named. `option` is what an error calls it."""
    parts = _parts(text) if isinstance(text, str) else []
    if not 1 <= len(parts) <= 2:
        raise BuildError(
            f"{option}={text!r} is not the name of a table; write 'table' or 'schema.table', with double"
            " quotes around a name that has a point in it: '\"a.b\"'"
        )
    for part in parts:
        check_name(part, option, longest=longest)
    return TableName(parts[-1], parts[0] if len(parts) == 2 else None)


def check_name(name: str, option: str, *, longest: int) -> None:
    """Raise `BuildError` for a name that no server keeps as it is."""
    if not name or "\0" in name:
        raise BuildError(f"{option}: {name!r} cannot be a name in a database")
    if len(name.encode()) > longest:
        raise BuildError(
            f"{option}: the name {name!r} has {len(name.encode())} bytes; the server keeps {longest}"
        )


def _parts(text: str) -> list[str]:
    """The names between the points; none if the text is something else."""
    parts, at = [], 0
    while match := _PART.match(text, at):
        quoted, plain = match.groups()
        parts.append(plain if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if at == len(text):
            return parts
        if text[at] != ".":
            break
        at += 1
    return []
