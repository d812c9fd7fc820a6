"""What users' functions count: counters, gauges and histograms by name, of one step.

A function reaches them as `ctx.metrics`. A task counts for itself and its report carries the numbers, so
only epochs that became durable count, each once. Counters and histograms add up over tasks and epochs. A
gauge keeps the last value: that of the last epoch that set it, and there of the last shard that did; a value
that every key has is better put into a histogram.

What a row counted stays counted when the row itself ends as a dead letter.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headrace._runtime.histogram import Distribution, Histogram
from headrace.endpoints import Json
from headrace.errors import UserCodeError

__all__ = ["Counter", "Gauge", "Metrics", "added", "readings"]

#: They are written with every epoch, so there must be few of them.
_MOST = 1_000
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


class Counter:
    """A whole number that grows."""

    __slots__ = ("value",)

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def inc(self, n: int = 1) -> None:
        """Add `n`."""
        self.value += n

    def add(self, other: Counter) -> None:
        """Both together."""
        self.value += other.value

    def reading(self) -> int:
        """The number."""
        return operator.index(self.value)

    to_json = reading


class Gauge:
    """A number that is what it was last set to."""

    __slots__ = ("value",)

    def __init__(self, value: float | None = None) -> None:
        self.value = value

    def set(self, value: float) -> None:
        """From now on it is this."""
        self.value = value

    def add(self, other: Gauge) -> None:
        """The other one is the later."""
        self.value = self.value if other.value is None else other.value

    def reading(self) -> float | None:
        """The number; None if it was never set."""
        return None if self.value is None else float(self.value)

    to_json = reading


_Meter = Counter | Gauge | Histogram
_M = TypeVar("_M", bound=Counter | Gauge | Histogram)
_NAMES: Mapping[type, str] = {Counter: "counter", Gauge: "gauge", Histogram: "histogram"}
_MADE_FROM: Mapping[str, Callable[[Any], _Meter]] = {
    "counter": Counter,
    "gauge": Gauge,
    "histogram": Histogram.from_json,
}


class Metrics:
    """The metrics of one step, in one task or over many."""

    __slots__ = ("_meters", "_uid")

    def __init__(self, uid: str) -> None:
        self._uid = uid
        self._meters: dict[str, _Meter] = {}

    def counter(self, name: str) -> Counter:
        """The counter of this name."""
        meter = self._meters.get(name)
        return meter if type(meter) is Counter else self._new(name, Counter)

    def gauge(self, name: str) -> Gauge:
        """The gauge of this name."""
        meter = self._meters.get(name)
        return meter if type(meter) is Gauge else self._new(name, Gauge)

    def histogram(self, name: str) -> Histogram:
        """The histogram of this name."""
        meter = self._meters.get(name)
        return meter if type(meter) is Histogram else self._new(name, Histogram)

    def add(self, other: Metrics) -> None:
        """Take what a later task or epoch counted in."""
        for name, meter in other._meters.items():
            mine: Any = self._meters.get(name)
            if type(mine) is not type(meter):
                mine = self._new(name, type(meter))
            mine.add(meter)

    def readings(self) -> dict[str, int | float | Distribution]:
        """Name -> number; what never got a value is left out."""
        found = {name: self._told(name, meter.reading) for name, meter in self._meters.items()}
        return {name: value for name, value in found.items() if value is not None}

    def to_json(self) -> dict[str, Json]:
        """Plain JSON: name -> [kind, numbers]."""
        found = {
            name: [_NAMES[type(meter)], self._told(name, meter.to_json)]
            for name, meter in self._meters.items()
        }
        return {name: [kind, value] for name, (kind, value) in found.items() if value is not None}

    @staticmethod
    def from_json(uid: str, fields: Mapping[str, Any]) -> Metrics:
        """The inverse of `to_json`."""
        made = Metrics(uid)
        made._meters = {name: _MADE_FROM[kind](value) for name, (kind, value) in fields.items()}
        return made

    def _new(self, name: str, kind: type[_M]) -> _M:
        present = self._meters.get(name)
        if present is not None:
            raise UserCodeError(
                f"The step '{self._uid}' uses the metric {name!r} as a {_NAMES[kind]}, but it is a "
                f"{_NAMES[type(present)]}; give one of them another name."
            )
        if not _NAME.fullmatch(name):
            raise UserCodeError(
                f"The step '{self._uid}' names a metric {name!r}; a name has letters, digits, '_', '.' "
                "and '-' only."
            )
        if len(self._meters) >= _MOST:
            raise UserCodeError(
                f"The step '{self._uid}' has {_MOST:,} metrics already, so {name!r} cannot be one more; "
                "what differs from key to key belongs into rows, not into names of metrics."
            )
        made = self._meters[name] = kind()
        return made

    def _told(self, name: str, read: Callable[[], Any]) -> Any:
        """What was counted, unless it is no number."""
        try:
            return read()
        except (TypeError, ValueError) as error:
            raise UserCodeError(
                f"The metric {name!r} of step '{self._uid}' was given something that is not a number: "
                f"{error}. A counter takes whole numbers, a gauge any number."
            ) from None


def added(before: Mapping[str, Any], epoch: Mapping[str, Metrics]) -> dict[str, dict[str, Json]]:
    """The metrics of all steps since the job began, as JSON, with one more epoch in them."""
    total = {uid: Metrics.from_json(uid, fields) for uid, fields in before.items()}
    for uid, metrics in epoch.items():
        total.setdefault(uid, Metrics(uid)).add(metrics)
    return {uid: metrics.to_json() for uid, metrics in total.items()}


def readings(metrics: Mapping[str, Any]) -> dict[str, dict[str, int | float | Distribution]]:
    """What `added` made, to look at: uid -> name -> number."""
    return {uid: Metrics.from_json(uid, fields).readings() for uid, fields in metrics.items()}
