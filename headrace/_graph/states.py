"""The state of a process function, known before any job starts: what its class declares and what `open` asks for."""

from __future__ import annotations

import copy
from typing import Any

from headrace.errors import BuildError, HeadraceError
from headrace.state import StateDescriptor, StateKind, StateSpec, state_specs

__all__ = ["Asked", "recorded_states"]


class Asked:
    """The context of `open` while a step is built: it notes which state is asked for."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self.specs: list[StateSpec] = []

    def get_state(self, descriptor: Any) -> None:
        """One value."""
        self._ask(descriptor, "value")

    def get_list_state(self, descriptor: Any) -> None:
        """Items."""
        self._ask(descriptor, "list")

    def get_map_state(self, descriptor: Any) -> None:
        """Entries."""
        self._ask(descriptor, "map")

    def get_reducing_state(self, descriptor: Any) -> None:
        """A value that others are folded into."""
        self._ask(descriptor, "reducing")

    def get_aggregating_state(self, descriptor: Any) -> None:
        """An accumulator."""
        self._ask(descriptor, "aggregating")

    def _ask(self, descriptor: Any, kind: StateKind) -> None:
        if not isinstance(descriptor, StateDescriptor) or descriptor.kind != kind:
            name = f"{kind.capitalize()}StateDescriptor"
            raise BuildError(
                f'{self._owner}.open: this takes an hr.state.{name}("name", type), not {descriptor!r}.'
            )
        self.specs.append(descriptor.spec(self._owner))


def recorded_states(function: Any) -> tuple[StateSpec, ...]:
    """Every state of a function. `open` runs once, on a copy, so that what it makes does not travel."""
    owner = type(function).__name__
    specs = [*state_specs(type(function))]
    if getattr(type(function).open, "__module__", "") != "headrace.process_functions":
        specs += _asked_in_open(function, owner)
    names = [spec.name for spec in specs]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise BuildError(f"{owner} has two states named '{repeated[0]}'.")
    return tuple(specs)


def _asked_in_open(function: Any, owner: str) -> list[StateSpec]:
    asked = Asked(owner)
    try:
        copy.copy(function).open(asked)
    except HeadraceError:
        raise
    except Exception as error:
        raise BuildError(
            f"{owner}.open was called once to learn which state it asks for, and it raised"
            f" {type(error).__name__}: {error}. Declare state on the class (name: hr.state.Value[int]) or"
            " do here only what works without the workers' surroundings, and the rest when a row first needs it."
        ) from error
    return asked.specs
