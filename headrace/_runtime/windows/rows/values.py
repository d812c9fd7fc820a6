"""State that users declare, as columns of a table: one box a value, kept as a list of one so that it may be absent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headrace._runtime.aggregates.rebuild import rebuilder
from headrace._runtime.columns import values
from headrace._runtime.results import build_column
from headrace._runtime.state import ValueSpec
from headrace.errors import UserCodeError
from headrace.state import declared

__all__ = ["Box", "Declared", "Namespace"]


class Box:
    """One declared value, as user code sees it: a place in the list of what is being looked at."""

    __slots__ = ("_place", "_values")

    def __init__(self, values: Callable[[], list[Any]], place: int) -> None:
        self._values = values
        self._place = place

    def value(self) -> Any:
        """What is there; None if nothing is."""
        return self._values()[self._place]

    def update(self, value: Any) -> None:
        """Put something there."""
        self._values()[self._place] = value

    def clear(self) -> None:
        """Take it away."""
        self._values()[self._place] = None


class Namespace:
    """Boxes by name."""

    def __init__(self, boxes: dict[str, Box], owner: str) -> None:
        self.__dict__.update(boxes)
        self.__dict__["_owner"] = owner

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"state is changed by its methods: context...{name}.update({value!r})")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{self._owner} declares no state '{name}'; write `{name}: hr.state.Value[int]` in the class"
        )


class Declared:
    """What one class declares, and how it lies in columns."""

    def __init__(self, owner: type, prefix: str, uid: str) -> None:
        found = declared(owner)
        self.names = list(found)
        self.owner = owner.__name__
        self._uid = uid
        self._kinds = [kind for kind, _ in found.values()]
        self._rebuild = [rebuilder(annotation) for _, annotation in found.values()]
        self.specs = tuple(
            ValueSpec(f"{prefix}{name}", pa.list_(kind), None)
            for name, kind in zip(found, self._kinds, strict=True)
        )

    def __len__(self) -> int:
        return len(self.names)

    def namespace(self, current: Callable[[], list[Any]], place: int = 0) -> Namespace:
        """The boxes, on the list that `current` returns, from a place on."""
        boxes = {name: Box(current, place + i) for i, name in enumerate(self.names)}
        return Namespace(boxes, self.owner)

    def read(self, number: int, column: pa.Array) -> list[Any]:
        """The values of one column as objects of the declared type."""
        again = self._rebuild[number]
        return [None if box is None else again(box[0]) for box in values(column)]

    def write(self, number: int, objects: Sequence[Any]) -> pa.Array:
        """Objects as a column of lists of one; None is null."""
        field = pa.field(self.names[number], self._kinds[number])
        there = [value is not None for value in objects]
        items = build_column([value for value in objects if value is not None], field, self._wrong)
        offsets, total = [], 0
        for present in there:
            offsets.append(total if present else None)
            total += present
        column = pa.ListArray.from_arrays(pa.array([*offsets, total], pa.int32()), items)
        return column.cast(pa.list_(self._kinds[number]))

    def _wrong(self, _: int, what: str) -> UserCodeError:
        return UserCodeError(f"Step '{self._uid}', state of {self.owner}: {what}.")
