"""State that belongs to a shard as a whole and to no key: broadcast maps, and the items of operators.

It lies in the tables of maps and lists, under one key: the shard's home. All that is special to it is what becomes of
it when the number of shards changes (`TableSpec.spread`), and that broadcast state can be written at times only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headrace._runtime.process.cursor import Cursor, Journal
from headrace._runtime.process.layout import Layout
from headrace._runtime.process.states.grouped import grouped_table
from headrace._runtime.process.states.lists import ListHandle, Lists
from headrace._runtime.process.states.maps import MapHandle, Maps
from headrace._runtime.process.touched import Touched
from headrace._runtime.state import ShardState, TableSpec
from headrace._runtime.state.spec import Spread
from headrace.errors import UserCodeError
from headrace.keys import hash_keys, home_in
from headrace.state import StateSpec

__all__ = ["WHOLE", "BroadcastHandle", "WholeStores", "whole_handle", "whole_tables"]

_HOME = pa.schema([pa.field("__home", pa.int64())])


class BroadcastHandle(MapHandle):
    """A map that only broadcast rows may change."""

    __slots__ = ("_name", "_uid", "writable")

    def __init__(self, spec: StateSpec, uid: str, cursor: Cursor) -> None:
        super().__init__(spec, uid, cursor)
        self._name = spec.name
        self._uid = uid
        self.writable = False

    def put(self, key: Any, value: Any) -> None:
        """Put an entry there."""
        self._require_writable()
        super().put(key, value)

    def remove(self, key: Any) -> None:
        """Take an entry away, if it is there."""
        self._require_writable()
        super().remove(key)

    def clear(self) -> None:
        """Take all entries away."""
        self._require_writable()
        super().clear()

    def _require_writable(self) -> None:
        if not self.writable:
            raise UserCodeError(
                f"The code of step '{self._uid}' changes the broadcast state '{self._name}' where it can be read only:"
                " shards would differ from then on. Change it in process_broadcast_element, which runs in all of them."
            )


class _Kind(NamedTuple):
    handle: Any
    store: Any
    spread: Spread


WHOLE: Mapping[str, _Kind] = {
    "broadcast": _Kind(BroadcastHandle, Maps, "everywhere"),
    "operator_list": _Kind(ListHandle, Lists, "dealt"),
    "operator_union": _Kind(ListHandle, Lists, "union"),
}


def whole_tables(layout: Layout) -> tuple[TableSpec, ...]:
    """The tables of such states."""
    return tuple(
        replace(grouped_table(spec, _HOME), spread=WHOLE[spec.kind].spread)
        for spec in layout.of_kind(*WHOLE)
    )


def whole_handle(spec: StateSpec, uid: str) -> Any:
    """What a function sees of such a state, wherever it stands."""
    at = Cursor()
    at.code = 0
    return WHOLE[spec.kind].handle(spec, uid, at)


class WholeStores:
    """All such state of one shard in one epoch."""

    def __init__(
        self, layout: Layout, state: ShardState, journal: Journal, handles: Mapping[str, Any]
    ) -> None:
        specs = layout.of_kind(*WHOLE)
        touched = Touched(_HOME)
        home = [pa.array(np.array([home_in(state.groups)]))]
        touched.codes(hash_keys(home), home)
        self._stores: list[Any] = []
        for spec in specs:
            store = WHOLE[spec.kind].store(spec, state, touched, journal, layout.node.uid)
            store.load(0)
            handles[spec.name].serve(store)
            self._stores.append(store)
        self._broadcast = [handles[spec.name] for spec in specs if spec.kind == "broadcast"]

    def let_write(self, allowed: bool) -> None:
        """Whether broadcast state may be changed now."""
        for handle in self._broadcast:
            handle.writable = allowed

    def write(self) -> None:
        """Put what changed into the tables."""
        for store in self._stores:
            store.write()
