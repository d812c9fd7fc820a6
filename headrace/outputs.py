"""Side outputs: named ways out of a step, beside its main one."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from headrace.errors import BuildError
from headrace.schema import as_schema

__all__ = ["OutputTag"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
_TAKEN = ("main", "late", "late_right", "errors")


class OutputTag:
    """The name and the columns of a side output. Two tags with the same name and columns are equal.

    alerts = OutputTag("alerts", Alert)
    """

    def __init__(self, name: str, schema: Any) -> None:
        if not _NAME.fullmatch(str(name)):
            raise BuildError(
                f"OutputTag({name!r}): a name is 1 to 100 letters, digits, '_' or '-', and begins with a"
                " letter."
            )
        if name in _TAKEN:
            raise BuildError(f"OutputTag({name!r}): {', '.join(_TAKEN)} are outputs of every step.")
        self.name = name
        self.schema: pa.Schema = as_schema(schema)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OutputTag)
            and self.name == other.name
            and self.schema.equals(other.schema)
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"OutputTag({self.name!r})"
