"""Types that Arrow does not know, in a form that it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

import pyarrow as pa

from headrace.errors import BuildError
from headrace.schema import arrow_type

__all__ = ["Codec", "register_codec", "stored_as"]


@dataclass(frozen=True)
class Codec:
    """How values of a type are stored: `encode` makes something of the type `storage`, `decode` the value again.

    shape = hr.state.Codec(storage=bytes, encode=Shape.to_wkb, decode=Shape.from_wkb)
    """

    storage: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


_registered: dict[type, Codec] = {}


def register_codec(kind: Any, codec: Any) -> None:
    """Store values of this class so, wherever a state declared from now on names it."""
    if not isinstance(kind, type) or not isinstance(codec, Codec):
        raise BuildError(
            f"register_codec takes a class and an hr.state.Codec, not {kind!r} and {codec!r}."
        )
    _registered[kind] = codec


def stored_as(annotation: Any) -> tuple[pa.DataType, Any, Codec | None]:
    """The Arrow type in which values of an annotation lie, what they are read back as, and the codec between."""
    codec = _codec_of(annotation)
    if codec is not None:
        return arrow_type(codec.storage), codec.storage, codec
    try:
        return arrow_type(annotation), annotation, None
    except BuildError as error:
        raise BuildError(
            f"{error} Or say how it is stored: hr.state.register_codec(cls, hr.state.Codec(storage=bytes,"
            " encode=..., decode=...))."
        ) from None


def _codec_of(annotation: Any) -> Codec | None:
    if get_origin(annotation) is Annotated:
        return next((extra for extra in get_args(annotation) if isinstance(extra, Codec)), None)
    return _registered.get(annotation) if isinstance(annotation, type) else None
