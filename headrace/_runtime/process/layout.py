"""How the state of a process step lies in tables.

keys                  by key: one column a value (value, reducing, aggregating), and a mask of those that are there
map:<name>            by key and map key, see `maps`
list:<name>           by key and number, see `lists`
event:<level> ...     timers by key and time, see `timers`
looks, planned        when to look at what may have expired, see `expiry`
waiting               rows that wait for their time, see `waiting`
"""

from __future__ import annotations

import pyarrow as pa

from headrace._graph.nodes import KeyedProcess
from headrace._runtime.plain_keys import plain_keys_schema
from headrace._runtime.state import TableSpec, ValueSpec
from headrace.state import StateSpec

__all__ = ["KEYS", "THERE", "VALUE_KINDS", "Layout", "column_of", "touched_of"]

KEYS = "keys"
#: Which values of a key are there, a bit for each.
THERE = "#there"
VALUE_KINDS = ("value", "reducing", "aggregating")


class Layout:
    """The tables of one step."""

    def __init__(self, node: KeyedProcess) -> None:
        self.node = node
        self.keys: pa.Schema = plain_keys_schema(node.keys[0], node.input_schemas[0])
        self.values: tuple[StateSpec, ...] = self.of_kind(*VALUE_KINDS)
        #: Whether a step without keys: rows are only dealt to shards.
        self.dealt = not node.keys[0]

    def of_kind(self, *kinds: str) -> tuple[StateSpec, ...]:
        """The states of these kinds."""
        return tuple(spec for spec in self.node.states if spec.kind in kinds)

    def expires_in(self, domain: str) -> bool:
        """Whether some state has a TTL in this time domain."""
        return any(s.ttl is not None and s.ttl.time == domain for s in self.node.states)

    def keys_table(self) -> TableSpec | None:
        """The table of values; None if there are none."""
        if not self.values:
            return None
        columns = [ValueSpec(THERE, pa.int64(), 0)]
        for spec in self.values:
            columns.append(ValueSpec(column_of(spec), spec.type))
            if spec.ttl is not None:
                columns.append(ValueSpec(touched_of(spec), pa.int64(), 0))
        return TableSpec(KEYS, self.keys, tuple(columns))


def column_of(spec: StateSpec) -> str:
    """The column of a value."""
    return f"={spec.name}"


def touched_of(spec: StateSpec) -> str:
    """The column that holds when a value with a TTL was touched."""
    return f"@{spec.name}"
