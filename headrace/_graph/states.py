"""The state of a process function, known before any job starts: what its class declares and what `open` asks for."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from headrace.errors import BuildError, HeadraceError
from headrace.state import StateDescriptor, StateKind, StateSpec, state_specs

__all__ = ["Asked", "Recorded", "recorded_states"]

_CONTAINERS = (list, dict, set)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The state of a function, and under which attribute the handle of each is found."""

    specs: tuple[StateSpec, ...]
    #: name of the state -> attribute; a handle that `open` puts elsewhere is missing
    attributes: dict[str, str]


class Asked:
    """The context of `open` while a step is built: it notes which state is asked for."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self.specs: list[StateSpec] = []

    def get_state(self, descriptor: Any) -> StateSpec:
        """One value."""
        return self._ask(descriptor, "value")

    def get_list_state(self, descriptor: Any) -> StateSpec:
        """Items."""
        return self._ask(descriptor, "list")

    def get_map_state(self, descriptor: Any) -> StateSpec:
        """Entries."""
        return self._ask(descriptor, "map")

    def get_reducing_state(self, descriptor: Any) -> StateSpec:
        """A value that others are folded into."""
        return self._ask(descriptor, "reducing")

    def get_aggregating_state(self, descriptor: Any) -> StateSpec:
        """An accumulator."""
        return self._ask(descriptor, "aggregating")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"the context of open gives out state and has no {name!r}; keys, times, timers and metrics are in the context"
            " of the methods that process rows"
        )

    def _ask(self, descriptor: Any, kind: StateKind) -> StateSpec:
        if not isinstance(descriptor, StateDescriptor) or descriptor.kind != kind:
            name = f"{kind.capitalize()}StateDescriptor"
            raise BuildError(
                f'{self._owner}.open: this takes an hr.state.{name}("name", type), not {descriptor!r}.'
            )
        self.specs.append(descriptor.spec(self._owner))
        return self.specs[-1]


def recorded_states(function: Any) -> Recorded:
    """Every state of a function. `open` runs once, on a copy, so that what it makes does not travel."""
    owner = type(function).__name__
    declared = state_specs(type(function))
    asked: list[StateSpec] = []
    attributes = {spec.name: spec.name for spec in declared}
    if getattr(type(function).open, "__module__", "") != "headrace.process_functions":
        opened = _trial(function)
        asked = _asked_in_open(opened, owner)
        attributes |= {v.name: name for name, v in _attributes(opened) if isinstance(v, StateSpec)}
    specs = (*declared, *asked)
    names = [spec.name for spec in specs]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise BuildError(f"{owner} has two states named '{repeated[0]}'.")
    return Recorded(specs, attributes)


def _trial(function: Any) -> Any:
    """A copy, also of the lists and dicts that `open` may put something into."""
    made = copy.copy(function)
    for name, value in _attributes(made):
        if type(value) in _CONTAINERS:
            object.__setattr__(made, name, copy.copy(value))
    return made


def _attributes(opened: Any) -> list[tuple[str, Any]]:
    return list(getattr(opened, "__dict__", {}).items())


def _asked_in_open(opened: Any, owner: str) -> list[StateSpec]:
    asked = Asked(owner)
    try:
        opened.open(asked)
    except HeadraceError:
        raise
    except Exception as error:
        raise BuildError(
            f"{owner}.open was called once to learn which state it asks for, and it raised"
            f" {type(error).__name__}: {error}. Declare state on the class (name: hr.state.Value[int]) or"
            " do here only what works without the workers' surroundings, and the rest when a row first needs it."
        ) from error
    return asked.specs
