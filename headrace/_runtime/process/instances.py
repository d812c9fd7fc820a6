"""The function that a worker calls: a copy of the user's, with handles for its state, kept between epochs.

It is a copy so that nothing of a run stays on the object that the user made. Handles outlive epochs, because a
function may have been given them in `open`; each epoch lends them its stores.
"""

from __future__ import annotations

import copy
from typing import Any

from headrace._graph.nodes import KeyedProcess
from headrace._runtime.lifecycle import forgotten_on_close, opened
from headrace._runtime.process.columns.values import ValueColumn
from headrace._runtime.process.cursor import Cursor
from headrace._runtime.process.states.stores import handle_of
from headrace.errors import UserCodeError
from headrace.state import StateDescriptor, state_specs

__all__ = ["Instance", "instance_of"]

_instances: dict[int, Instance] = {}
forgotten_on_close(_instances)


def instance_of(node: KeyedProcess) -> Instance:
    """The instance of a step in this process."""
    found = _instances.get(id(node))
    if found is None:
        # One job at a time runs in a worker; what an earlier one left is of no use.
        if len(_instances) >= _MOST:
            _instances.clear()
        found = _instances[id(node)] = Instance(node)
    return found


_MOST = 1_000


class Instance:
    """One function in one process."""

    def __init__(self, node: KeyedProcess) -> None:
        #: Held, so that no other node gets its number.
        self.node = node
        self.function = copy.copy(node.function)
        self.cursor = Cursor()
        self.handles: dict[str, Any] = {
            spec.name: ValueColumn(spec, node.uid)
            if node.kind == "batch"
            else handle_of(spec, node.uid, self.cursor)
            for spec in node.states
        }
        self._declared = [spec.name for spec in state_specs(type(self.function))]
        for name in self._declared:
            # Not `setattr`: a dataclass may be frozen.
            object.__setattr__(self.function, name, self.handles[name])
        self._opening = Opening(self.handles)

    def open(self) -> Any:
        """The function, opened."""
        return opened(self.function, self._opening, self.node.uid)

    def check(self) -> None:
        """Refuse a function that has assigned to its state: what it remembers would belong to no key."""
        for name in self._declared:
            if getattr(self.function, name, None) is not self.handles[name]:
                raise UserCodeError(
                    f"The code of step '{self.node.uid}' assigns to self.{name}, which is declared as state: an attribute"
                    f" is the same for all keys and gone with the process. Write self.{name}.update(...), or another"
                    " method of its kind of state, or choose another name for the attribute."
                )


class Opening:
    """The context of `open`: it gives out the state that descriptors name."""

    def __init__(self, handles: dict[str, Any]) -> None:
        self._handles = handles

    def get_state(self, descriptor: StateDescriptor) -> Any:
        """The state of a descriptor; the builder has seen that it is of the right kind."""
        return self._handles[descriptor.name]

    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state
