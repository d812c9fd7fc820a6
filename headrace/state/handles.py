"""The kinds of state, as functions see them. Each is a view of the key that is being processed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

__all__ = [
    "Aggregating",
    "Broadcast",
    "List",
    "Map",
    "OperatorList",
    "OperatorUnion",
    "Reducing",
    "Value",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
T_contra = TypeVar("T_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)


class Value(Protocol, Generic[T]):
    """One value, or nothing yet.

    An `hr.KeyedBatchFunction` has those of many keys at once, by places: `get`, `put`, and `clear` with places.
    """

    def value(self) -> T | None:
        """The value; None if there is none."""

    def update(self, value: T) -> None:
        """Put a value there."""

    def clear(self, places: Any = None) -> None:
        """Take it away."""

    def get(self, places: Any, default: Any = None) -> Any:
        """On columns: an array of the values at these places."""

    def put(self, places: Any, values: Any) -> None:
        """On columns: put values at these places."""


class List(Protocol, Generic[T]):
    """Items in the order in which they were added."""

    def get(self) -> list[T]:
        """All items; a list of the caller's own."""

    def add(self, value: T) -> None:
        """One more item. The others are not read."""

    def add_all(self, values: Iterable[T]) -> None:
        """Several more items."""

    def update(self, values: Iterable[T]) -> None:
        """These items instead of those that are there."""

    def clear(self) -> None:
        """Take all away."""


class Map(Protocol, Generic[K, V]):
    """Entries by key. Each lies in storage by itself: one is read without the others."""

    def get(self, key: K, default: V | None = None) -> V | None:
        """The value of an entry, or `default`."""

    def put(self, key: K, value: V) -> None:
        """Put an entry there."""

    def put_all(self, entries: Mapping[K, V]) -> None:
        """Put several entries there."""

    def remove(self, key: K) -> None:
        """Take an entry away, if it is there."""

    def contains(self, key: K) -> bool:
        """Whether there is such an entry."""

    def keys(self) -> list[K]:
        """The keys of all entries."""

    def values(self) -> list[V]:
        """The values of all entries."""

    def items(self) -> list[tuple[K, V]]:
        """All entries."""

    def is_empty(self) -> bool:
        """Whether there is no entry."""

    def clear(self) -> None:
        """Take all entries away."""

    def __getitem__(self, key: K) -> V: ...
    def __setitem__(self, key: K, value: V) -> None: ...
    def __delitem__(self, key: K) -> None: ...
    def __contains__(self, key: object) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[K]: ...


class Reducing(Protocol, Generic[T]):
    """One value that all that is added is folded into, two becoming one: `keep(reduce=function)`."""

    def get(self) -> T | None:
        """The value; None if nothing was added."""

    def add(self, value: T) -> None:
        """Fold a value in."""

    def clear(self) -> None:
        """Take it away."""


class Aggregating(Protocol, Generic[T_contra, T_co]):
    """An accumulator of an `AggregateFunction`: `keep(aggregate=function)`. In: what is added; out: the result."""

    def get(self) -> T_co | None:
        """The result; None if nothing was added."""

    def add(self, value: T_contra) -> None:
        """Fold a value in."""

    def clear(self) -> None:
        """Take it away."""


class Broadcast(Map[K, V], Protocol, Generic[K, V]):
    """A map that is the same for all keys; only `process_broadcast_element` may change it.

    Every shard has all of it, and changes it by itself: what `process_broadcast_element` does must follow from the
    row and the state alone, or shards come to differ. Entries are shown in the order of their keys.
    """


class OperatorList(Protocol, Generic[T]):
    """Items of a step without keys, such as a buffer: each shard has a list of its own.

    Rows are dealt evenly to the shards by their place in the source, so it depends on the number of shards which
    rows a list has seen, and `get` in one shard never shows the items of another. When the number of shards
    changes, all items are put one behind the other and dealt anew, one to each shard in turn; a crash changes nothing.
    Make results that do not depend on which shard holds what: a sum over all, a buffer that is sent out.

        class Buffered(hr.ProcessFunction):
            waiting: hr.state.OperatorList[str]
    """

    def get(self) -> list[T]:
        """The items of this shard."""

    def add(self, value: T) -> None:
        """One more item."""

    def update(self, values: Iterable[T]) -> None:
        """These items instead of those that are there."""

    def clear(self) -> None:
        """Take all of this shard's away."""


class OperatorUnion(OperatorList[T], Protocol, Generic[T]):
    """As `OperatorList`, but when the number of shards changes every shard gets all items of all shards.

    Each keeps what it needs and drops the rest with `update`; otherwise there are as many copies of an item from
    then on as there are shards, and the next change joins those too. A crash changes nothing.
    """
