"""Which store and which handle serve each kind of state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace._runtime.process.cursor import Cursor, Journal
from headrace._runtime.process.layout import VALUE_KINDS, Layout
from headrace._runtime.process.states.expiry import expiry_tables
from headrace._runtime.process.states.grouped import grouped_table
from headrace._runtime.process.states.lists import ListHandle, Lists
from headrace._runtime.process.states.maps import MapHandle, Maps
from headrace._runtime.process.states.values import Values
from headrace._runtime.process.states.values import handle_of as value_handle_of
from headrace._runtime.process.states.whole import WHOLE, WholeStores, whole_handle, whole_tables
from headrace._runtime.process.timing.timers import timer_tables
from headrace._runtime.process.timing.waiting import waiting_tables
from headrace._runtime.process.touched import Touched
from headrace._runtime.state import ShardState, TableSpec
from headrace.errors import EngineError
from headrace.state import StateSpec

__all__ = ["CLOCK_TIMERS", "EVENT_TIMERS", "Stores", "handle_of", "process_tables"]

EVENT_TIMERS = "event"
CLOCK_TIMERS = "clock"
#: The handles and stores of states that are many rows of a key.
_GROUPED: dict[str, tuple[Any, Any]] = {"list": (ListHandle, Lists), "map": (MapHandle, Maps)}


def process_tables(node: Any) -> tuple[TableSpec, ...]:
    """The state of a process step."""
    layout = Layout(node)
    values = layout.keys_table()
    return (
        *(() if values is None else (values,)),
        *(grouped_table(spec, layout.keys) for spec in layout.of_kind(*_GROUPED)),
        *whole_tables(layout),
        *waiting_tables(node),
        *expiry_tables(layout),
        *timer_tables(EVENT_TIMERS, layout.keys),
        *timer_tables(CLOCK_TIMERS, layout.keys),
    )


def handle_of(spec: StateSpec, uid: str, cursor: Cursor) -> Any:
    """What a function sees of a state; it is of use once it serves a store."""
    if spec.kind in VALUE_KINDS:
        return value_handle_of(spec, uid, cursor)
    if spec.kind in _GROUPED:
        return _GROUPED[spec.kind][0](spec, uid, cursor)
    if spec.kind in WHOLE:
        return whole_handle(spec, uid)
    raise EngineError(f"no handle for state of the kind {spec.kind!r}")


class Stores:
    """All state of the keys that an epoch touches."""

    def __init__(
        self, layout: Layout, state: ShardState, touched: Touched, journal: Journal,
        handles: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self._touched = touched
        self._loaded = 0
        #: What belongs to keys.
        self.by_key: list[Any] = []
        self._handles = handles
        self._served: list[tuple[StateSpec, Any]] = []
        if layout.values:
            values = Values(layout, state, touched, journal)
            self.by_key.append(values)
            self._served = list(zip(layout.values, values.kept, strict=True))
        for spec in layout.of_kind(*_GROUPED):
            store = _GROUPED[spec.kind][1](spec, state, touched, journal, layout.node.uid)
            self.by_key.append(store)
            self._served.append((spec, store))
        #: What belongs to no key.
        self.whole = WholeStores(layout, state, journal, handles)
        self.lend()

    def lend(self, instead: Callable[[str], Any] | None = None) -> None:
        """Let the handles of state that belongs to keys have their stores, or something instead of them."""
        for spec, store in self._served:
            self._handles[spec.name].serve(store if instead is None else instead(spec.name))

    def load(self) -> None:
        """Read what is kept of keys that were touched since the last time."""
        first, self._loaded = self._loaded, len(self._touched)
        if first < self._loaded:
            for store in self.by_key:
                store.load(first)

    def write(self) -> None:
        """Put what changed into the tables."""
        for store in (*self.by_key, self.whole):
            store.write()
