"""Values that live for a time, of many keys at once: when they were touched, and what goes when they are over.

A call on columns touches a value at the greatest timestamp that its key has in the call, or at the clock. When the next
value of a key can be over is planned when the call ends, see `expiry`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from headrace._runtime.process.columns.keys import Keys
from headrace._runtime.process.layout import KEYS, THERE, Layout, touched_of
from headrace._runtime.process.states.expiry import Looks
from headrace._runtime.state import ShardState, Table
from headrace._runtime.state.index import distinct
from headrace.keys import hash_keys
from headrace.state import StateSpec
from headrace.watermarks import END_OF_TIME

__all__ = ["Lifetimes", "Present"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Present(Protocol):
    """The time of a call."""

    def now(self, domain: str) -> int:
        """How far the watermark or the clock has come."""

    @property
    def key_timestamps(self) -> Integers | None:
        """For each key of the call its greatest timestamp."""


class Lifetimes:
    """The values with a TTL of the keys of one call after the other."""

    def __init__(self, layout: Layout, state: ShardState) -> None:
        self._schema = layout.keys
        self._state = state
        self._mortal = {n: spec for n, spec in enumerate(layout.values) if spec.ttl is not None}
        domains = ("event", "processing")
        self._looks = {d: Looks(d, state) for d in domains if layout.expires_in(d)}
        #: By domain, the places of keys that the call has touched.
        self._aged: dict[str, list[Integers]] = {domain: [] for domain in self._looks}
        self._stamps: Integers | None = None

    def living(
        self, number: int, places: Integers | None, slots: Integers, there: Mask, at: Present
    ) -> Mask:
        """Which of the values that are there are not over; to read them may touch them."""
        spec = self._mortal.get(number)
        if spec is None or not there.any():
            return there
        touched: Any = self._table.get(touched_of(spec), slots)
        there &= touched + _ttl(spec) > at.now(_domain(spec))
        if spec.ttl is not None and spec.ttl.update == "read_and_write":
            chosen = np.flatnonzero(there)
            read = chosen if places is None else places[chosen]
            self.touch(number, read, slots[chosen], at, touched[chosen])
        return there

    def touch(
        self, number: int, places: Integers | None, slots: Integers, at: Present,
        least: Integers | None = None,
    ) -> None:  # fmt: skip
        """The values of this number in these slots, of keys at these places, live anew, from `least` or later."""
        spec = self._mortal.get(number)
        if spec is None or not len(slots):
            return
        domain = _domain(spec)
        if domain == "processing":
            stamps = np.full(len(slots), at.now(domain))
        else:
            if self._stamps is None:
                self._stamps = at.key_timestamps
            assert self._stamps is not None
            stamps = self._stamps if places is None else self._stamps[places]
        if least is not None:
            stamps = np.maximum(stamps, least)
        self._table.put(touched_of(spec), slots, stamps)
        self._aged[domain].append(np.arange(len(slots)) if places is None else places)

    def end(self, keys: Keys, slots: Integers, at: Present) -> list[Integers]:
        """The call is over: plan the next looks. The slots of which something was over already."""
        self._stamps = None
        cleared = []
        for domain, aged in self._aged.items():
            if aged:
                places = distinct(np.concatenate(aged))
                cleared.append(self._age(domain, keys, places, slots[places], at.now(domain)))
                aged.clear()
        return cleared

    def expire(self, domain: str, before: int, reached: int) -> Integers:
        """Time moves: take away what is over by that; the slots where something was."""
        looks = self._looks.get(domain)
        columns = [] if looks is None else looks.due(before, reached)
        if looks is None or not columns:
            return np.empty(0, np.int64)
        keys = Keys.of_rows(self._schema, columns, hash_keys(columns))
        looks.unplan(keys, np.arange(len(keys)))
        if not self._state.buckets(KEYS):
            return np.empty(0, np.int64)
        slots = self._table.find(keys.hashes(), keys.columns())
        places = np.flatnonzero(slots >= 0)
        return self._age(domain, keys, places, slots[places], reached)

    def forget(self, domain: str, reached: int) -> None:
        """Drop the looks that time has passed."""
        if domain in self._looks:
            self._looks[domain].forget(reached)

    @property
    def _table(self) -> Table:
        return self._state.table(KEYS, 0)

    def _age(
        self, domain: str, keys: Keys, places: Integers, slots: Integers, now: int
    ) -> Integers:
        """Take away what is over of these keys and plan a look at the rest; the slots where something was."""
        before: Any = self._table.get(THERE, slots)
        there, nexts = before.copy(), np.full(len(slots), END_OF_TIME)
        for number, spec in self._mortal.items():
            if _domain(spec) == domain:
                touched: Any = self._table.get(touched_of(spec), slots)
                ends, bit = touched + _ttl(spec), 1 << number
                there[ends <= now] &= ~bit
                nexts = np.where((there & bit) != 0, np.minimum(nexts, ends), nexts)
        gone = there != before
        if gone.any():
            self._table.put(THERE, slots[gone], there[gone])
        left = nexts < END_OF_TIME
        if left.any():
            self._looks[domain].plan(keys, places[left], nexts[left], now)
        found: Integers = slots[gone]
        return found


def _ttl(spec: StateSpec) -> int:
    return 0 if spec.ttl is None else spec.ttl.ttl_us


def _domain(spec: StateSpec) -> str:
    return "event" if spec.ttl is None else spec.ttl.time
