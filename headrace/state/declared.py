"""What a class says about its state, as plain facts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import pyarrow as pa

from headrace.errors import BuildError
from headrace.functions import AggregateFunction, accumulator_annotation
from headrace.keys import check_key_type
from headrace.state.codecs import Codec, stored_as
from headrace.state.handles import (
    Aggregating,
    Broadcast,
    List,
    Map,
    OperatorList,
    OperatorUnion,
    Reducing,
    Value,
)
from headrace.state.ttl import TTL

__all__ = [
    "FOREVER",
    "Keep",
    "StateKind",
    "StateSpec",
    "declared",
    "keep",
    "make_spec",
    "state_specs",
]

StateKind: TypeAlias = Literal[
    "value",
    "list",
    "map",
    "reducing",
    "aggregating",
    "broadcast",
    "operator_list",
    "operator_union",
]
_KINDS: dict[Any, StateKind] = {
    Value: "value",
    List: "list",
    Map: "map",
    Reducing: "reducing",
    Aggregating: "aggregating",
    Broadcast: "broadcast",
    OperatorList: "operator_list",
    OperatorUnion: "operator_union",
}


@dataclass(frozen=True, slots=True)
class Keep:
    """How a state is kept; made by `keep`."""

    ttl: TTL | None = None
    #: It is known to grow, and meant to.
    forever: bool = False
    reduce: Callable[[Any, Any], Any] | None = None
    aggregate: AggregateFunction | None = None


#: State of keys that never go: meant so, and no warning is wanted.
FOREVER: Any = Keep(forever=True)


def keep(
    *,
    ttl: TTL | None = None,
    forever: bool = False,
    reduce: Callable[[Any, Any], Any] | None = None,
    aggregate: AggregateFunction | None = None,
) -> Any:
    """How a declared state is kept: for how long, and for `Reducing` and `Aggregating` how values are folded."""
    if reduce is not None and not callable(getattr(reduce, "reduce", reduce)):
        raise BuildError(f"keep(reduce=...) takes a function of two values, not {reduce!r}.")
    return Keep(ttl, forever, getattr(reduce, "reduce", reduce), aggregate)


@dataclass(frozen=True, slots=True)
class StateSpec:
    """One state of a function: its kind, and the Arrow types in which it lies."""

    name: str
    kind: StateKind
    #: Of the value, the item, the map's value or the accumulator.
    type: pa.DataType
    #: What a stored value is read back as.
    annotation: Any
    codec: Codec | None = None
    #: Of the map's key.
    key_type: pa.DataType | None = None
    key_annotation: Any = None
    key_codec: Codec | None = None
    ttl: TTL | None = None
    forever: bool = False
    #: The function of `Reducing`, the `AggregateFunction` of `Aggregating`.
    function: Any = None


def declared(owner: type) -> dict[str, tuple[pa.DataType, Any]]:
    """The values that a class declares: name -> (Arrow type, annotation). Other kinds of state are refused here."""
    found = {}
    for name, hint in _hints(owner).items():
        kind = _KINDS.get(get_origin(hint))
        if kind is None:
            continue
        if kind != "value":
            raise BuildError(
                f"{owner.__name__}.{name}: only hr.state.Value[...] can be declared here; the other kinds of"
                " state are for process functions."
            )
        spec = make_spec(owner.__name__, name, kind, get_args(hint), Keep())
        found[name] = (spec.type, spec.annotation)
    return found


def state_specs(owner: type) -> tuple[StateSpec, ...]:
    """Every state that a class declares with an annotation."""
    specs, hints = [], _hints(owner)
    _check_unannotated(owner, hints)
    for name, hint in hints.items():
        kind = _KINDS.get(get_origin(hint))
        if kind is not None:
            options = _options(owner, name)
            specs.append(make_spec(owner.__name__, name, kind, get_args(hint), options))
        elif hint in _KINDS:
            raise BuildError(
                f"{owner.__name__}.{name}: say the type of the state, for example"
                f" hr.state.{hint.__name__}[{'str, ' if hint in (Map, Broadcast) else ''}int]."
            )
    return tuple(specs)


def make_spec(
    owner: str, name: str, kind: StateKind, arguments: tuple[Any, ...], options: Keep
) -> StateSpec:
    """The facts of one state."""
    _check_options(owner, name, kind, options)
    annotation: Any = arguments[-1]
    function: Any = options.reduce
    if kind == "aggregating":
        function = options.aggregate
        annotation = accumulator_annotation(options.aggregate)  # type: ignore[arg-type]
    try:
        stored, read_as, codec = stored_as(annotation)
        key_type, key_read_as, key_codec = (
            stored_as(arguments[0]) if kind in ("map", "broadcast") else (None, None, None)
        )
    except BuildError as error:
        raise BuildError(f"{owner}.{name}: {error}") from None
    if key_type is not None and not check_key_type(key_type):
        raise BuildError(
            f"{owner}.{name}: the key of an entry must be a plain value, such as a number, a text or a date,"
            f" not {key_type}; give its class a codec that stores it as one."
        )
    return StateSpec(
        name, kind, stored, read_as, codec, key_type, key_read_as, key_codec,
        options.ttl, options.forever, function,
    )  # fmt: skip


def _check_unannotated(owner: type, hints: Mapping[str, Any]) -> None:
    """Refuse `n = hr.state.Value[int]` and `n = hr.state.TTL(...)`, which declare nothing."""
    for name in dir(owner):
        given = inspect.getattr_static(owner, name, None)
        if name in hints or not (isinstance(given, TTL | Keep) or get_origin(given) in _KINDS):
            continue
        raise BuildError(
            f"{owner.__name__}.{name} = {given!r} declares no state: the type of a state stands behind a colon, and"
            f" how it is kept behind the equals sign, for example {name}: hr.state.Value[int] = hr.state.FOREVER."
        )


def _options(owner: type, name: str) -> Keep:
    given = getattr(owner, name, None)
    if given is None:
        return Keep()
    if any(callable(vars(each).get(name)) for each in owner.__mro__):
        raise BuildError(
            f"{owner.__name__}.{name} is a state and a method; give the state another name."
        )
    if isinstance(given, TTL):
        return Keep(ttl=given)
    if isinstance(given, Keep):
        return given
    raise BuildError(
        f"{owner.__name__}.{name} = {given!r}: behind the type of a state stands how it is kept, an"
        " hr.state.TTL(...), hr.state.FOREVER or hr.state.keep(...). A first value is not declared:"
        " value() is None until update() is called."
    )


def _check_options(owner: str, name: str, kind: StateKind, options: Keep) -> None:
    wanted = {"reducing": "reduce", "aggregating": "aggregate"}.get(kind)
    for option in ("reduce", "aggregate"):
        there = getattr(options, option) is not None
        if there and option != wanted:
            raise BuildError(f"{owner}.{name}: {option}= is not for this kind of state.")
        if option == wanted and not there:
            raise BuildError(
                f"{owner}.{name} needs to know how values are folded: = hr.state.keep({option}=...)."
            )
    if kind == "aggregating" and not isinstance(options.aggregate, AggregateFunction):
        raise BuildError(f"{owner}.{name}: aggregate= takes an hr.AggregateFunction.")
    if options.ttl is not None and not isinstance(options.ttl, TTL):
        raise BuildError(
            f"{owner}.{name}: ttl= takes an hr.state.TTL(timedelta(...)), not {options.ttl!r}."
        )
    if options.ttl is not None and kind in ("broadcast", "operator_list", "operator_union"):
        raise BuildError(f"{owner}.{name}: state that does not belong to a key has no TTL.")


def _hints(owner: type) -> dict[str, Any]:
    try:
        return get_type_hints(owner, include_extras=True)
    except NameError as error:
        raise BuildError(
            f"The annotations of {owner.__name__} cannot be resolved: {error}. Define or import it in the module, outside"
            " of functions and of `if TYPE_CHECKING`, because state is built from annotations."
        ) from None
