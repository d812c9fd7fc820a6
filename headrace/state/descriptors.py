"""State declared in `open`, as Flink's users write it: `self.n = ctx.get_state(ValueStateDescriptor("n", int))`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from headrace.functions import AggregateFunction
from headrace.state.declared import Keep, StateKind, StateSpec, keep, make_spec
from headrace.state.ttl import TTL

__all__ = [
    "AggregatingStateDescriptor",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "ReducingStateDescriptor",
    "StateDescriptor",
    "ValueStateDescriptor",
]


@dataclass(eq=False)
class StateDescriptor:
    """A name and a type, and how the state is kept."""

    kind: ClassVar[StateKind]
    name: str
    type: Any = None
    ttl: TTL | None = field(default=None, kw_only=True)
    #: It is known to grow, and meant to: no warning.
    forever: bool = field(default=False, kw_only=True)

    def enable_time_to_live(self, ttl: TTL) -> Self:
        """Give it a time to live; it changes this descriptor, as in Flink, and returns it."""
        self.ttl = ttl
        return self

    def spec(self, owner: str) -> StateSpec:
        """The facts of the state."""
        return make_spec(owner, self.name, self.kind, self._arguments(), self._options())

    def _arguments(self) -> tuple[Any, ...]:
        return (self.type,)

    def _options(self) -> Keep:
        return Keep(self.ttl, self.forever)


@dataclass(eq=False)
class ValueStateDescriptor(StateDescriptor):
    """One value."""

    kind = "value"


@dataclass(eq=False)
class ListStateDescriptor(StateDescriptor):
    """Items of one type."""

    kind = "list"


@dataclass(eq=False)
class MapStateDescriptor(StateDescriptor):
    """Entries: the type of keys, then that of values."""

    kind = "map"
    value_type: Any = None

    def _arguments(self) -> tuple[Any, ...]:
        return (self.type, self.value_type)


@dataclass(eq=False)
class ReducingStateDescriptor(StateDescriptor):
    """A value that others are folded into by `reduce`."""

    kind = "reducing"
    reduce: Callable[[Any, Any], Any] | None = None

    def _options(self) -> Keep:
        options: Keep = keep(ttl=self.ttl, forever=self.forever, reduce=self.reduce)
        return options


@dataclass(eq=False)
class AggregatingStateDescriptor(StateDescriptor):
    """An accumulator of an `AggregateFunction`."""

    kind = "aggregating"
    aggregate: AggregateFunction | None = None

    def _options(self) -> Keep:
        return Keep(self.ttl, self.forever, None, self.aggregate)
