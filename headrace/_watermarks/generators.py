"""A user's watermark generator between calls: its attributes as JSON, and back. Pure but for user code.

An instance lives for one call only. Before it, a new one is made and given the attributes that the last call
left; after it, they are taken again. They are stored as JSON, never as a pickle. What JSON lacks is an object
with one key that begins with "@".
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.endpoints import Json
from headrace.errors import HeadraceError, UserCodeError
from headrace.watermarks import WatermarkGenerator, WatermarkStrategy

__all__ = ["Generated", "State", "hear", "speak"]

#: The attributes of an instance, as JSON.
State = Mapping[str, Json]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Generated(NamedTuple):
    """What the generator of a partition has promised so far, and its attributes."""

    promised_us: int | None
    state: State


def speak(
    source: str, partition: str, strategy: WatermarkStrategy, last: Generated | None, clock_us: int
) -> Generated:
    """Ask for the watermark of an epoch; `last` is what the epochs before left."""
    with _user_code(source, partition):
        generator = _revive(strategy, None if last is None else last.state)
        said: Any = generator.on_epoch(_EPOCH + clock_us * _MICROSECOND)
    promised = None if last is None else last.promised_us
    if said is not None:
        if not isinstance(said, datetime) or said.utcoffset() is None:
            raise UserCodeError(
                f"The watermark generator of source '{source}' must return a datetime with a time zone"
                f" from on_epoch, or None, but it returned {said!r}."
            )
        now_us = (said - _EPOCH) // _MICROSECOND
        promised = now_us if promised is None else max(promised, now_us)
    return Generated(promised, _capture(source, generator))


def hear(
    source: str,
    partition: str,
    strategy: WatermarkStrategy,
    state: State | None,
    timestamps: npt.NDArray[np.int64],
) -> State:
    """Tell of the timestamps that an epoch has read, in microseconds; the attributes behind that."""
    with _user_code(source, partition):
        generator = _revive(strategy, state)
        generator.on_events(timestamps.view("datetime64[us]"))
    return _capture(source, generator)


def _revive(strategy: WatermarkStrategy, state: State | None) -> WatermarkGenerator:
    assert strategy.generator is not None
    generator = strategy.generator()
    if not isinstance(generator, WatermarkGenerator):
        raise TypeError(f"the function of for_generator returned {generator!r}, no generator")
    for name, value in (state or {}).items():
        setattr(generator, name, _decoded(value))
    return generator


def _capture(source: str, generator: WatermarkGenerator) -> State:
    kind = type(generator).__name__
    attributes = getattr(generator, "__dict__", {})
    state: dict[str, Json] = {}
    for name in sorted(attributes):
        try:
            state[name] = _encoded(attributes[name])
        except TypeError as error:
            raise UserCodeError(
                f"The attribute '{name}' of {kind}, the watermark generator of source '{source}', cannot go"
                f" into the checkpoint: {error}. Keep numbers, texts, booleans, None, lists, dicts, aware"
                " datetimes and timedeltas; make everything else in the class or in a property."
            ) from None
    return state


def _encoded(value: Any) -> Json:
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value  # type: ignore[no-any-return]
    if type(value) is float:
        return value if math.isfinite(value) else {"@float": repr(value)}
    if isinstance(value, list):
        return [_encoded(part) for part in value]
    if isinstance(value, dict):
        return _encoded_dict(value)
    return _encoded_time(value)


def _encoded_dict(value: dict[Any, Any]) -> Json:
    for key in value:
        if type(key) is not str or key.startswith("@"):
            raise TypeError(f"the key {key!r} is not a text, or begins with '@'")
    return {key: _encoded(value[key]) for key in sorted(value)}


def _encoded_time(value: Any) -> Json:
    if isinstance(value, np.datetime64):
        return {"@datetime64": int(value.astype("datetime64[us]").astype(np.int64))}
    if isinstance(value, np.timedelta64):
        return {"@timedelta64": int(value.astype("timedelta64[us]").astype(np.int64))}
    if isinstance(value, timedelta):
        return {"@timedelta": value // _MICROSECOND}
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise TypeError(f"{value!r} has no time zone")
        return {"@datetime": (value - _EPOCH) // _MICROSECOND}
    raise TypeError(f"it is {value!r} ({type(value).__name__})")


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    match value:
        case {"@float": text}:
            return float(text)
        case {"@datetime64": number}:
            return np.datetime64(number, "us")
        case {"@timedelta64": number}:
            return np.timedelta64(number, "us")
        case {"@timedelta": number}:
            return number * _MICROSECOND
        case {"@datetime": number}:
            return _EPOCH + number * _MICROSECOND
    return {key: _decoded(part) for key, part in value.items()}


@contextmanager
def _user_code(source: str, partition: str) -> Iterator[None]:
    """What fails inside is the user's, and says of which source."""
    try:
        yield
    except (HeadraceError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - user code may raise anything, SystemExit too
        last = traceback.extract_tb(error.__traceback__)[-1]
        summary = "".join(traceback.format_exception_only(error)).strip()
        raise UserCodeError(
            f"The watermark generator of source '{source}' (partition '{partition}') raised {summary}"
            f"\n  at {last.filename}:{last.lineno}, in {last.name}"
        ) from None
