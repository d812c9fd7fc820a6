"""State that functions and triggers declare on their class, with its type:

    class Alerts(hr.ProcessWindowFunction):
        shown: hr.state.Value[int]

The type is an annotation as in schemas: what Arrow can hold. Values are stored as Arrow, never as pickles.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa

from headrace.errors import BuildError
from headrace.schema import arrow_type

__all__ = ["Value", "declared"]

T = TypeVar("T")


class Value(Protocol, Generic[T]):
    """One value, or nothing yet."""

    def value(self) -> T | None:
        """The value; None if there is none."""

    def update(self, value: T) -> None:
        """Put a value there."""

    def clear(self) -> None:
        """Take it away."""


def declared(owner: type) -> dict[str, tuple[pa.DataType, Any]]:
    """What a class declares: name -> (Arrow type, annotation)."""
    try:
        hints = get_type_hints(owner, include_extras=True)
    except NameError as error:
        raise BuildError(
            f"The annotations of {owner.__name__} cannot be resolved: {error}."
        ) from None
    found = {}
    for name, hint in hints.items():
        if get_origin(hint) is Value:
            (inner,) = get_args(hint)
            try:
                found[name] = (arrow_type(inner), inner)
            except BuildError as error:
                raise BuildError(f"{owner.__name__}.{name}: {error}") from None
    return found
