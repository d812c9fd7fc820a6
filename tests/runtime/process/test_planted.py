"""The proof can fail: mistakes that are put into the engine on purpose are found by random programs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, settings

from headrace._runtime.process import operator
from headrace._runtime.process.results import Results
from headrace._runtime.process.states.entries import Maps
from headrace._runtime.process.states.grouped import Grouped
from headrace._runtime.process.states.lifetime import Lifetime
from headrace._runtime.process.states.values import Values
from headrace._runtime.process.timing import ordered
from headrace._runtime.process.timing.alarms import Alarms
from headrace._runtime.process.timing.timers import Timers
from headrace._runtime.unfolded import TIMESTAMP
from headrace.testing import step_harness
from tests.runtime.process.cases import RANDOM, Written, difference, written

Patch = pytest.MonkeyPatch


def _one_timer_is_two(patched: Patch) -> None:
    patched.setattr(Alarms, "_is_due", lambda *_: False)


def _deleted_timers_fire(patched: Patch) -> None:
    patched.setattr(Timers, "delete", lambda *_: None)


def _timers_come_a_little_late(patched: Patch) -> None:
    real = Timers.due
    patched.setattr(Timers, "due", lambda self, before, reached: real(self, before, reached - 1))


def _a_shard_is_lost_when_state_moves(patched: Patch) -> None:
    real = step_harness.rescale
    empty = step_harness.MemoryChunkStore
    patched.setattr(
        step_harness,
        "rescale",
        lambda old, specs, new: real([empty(), *old[1:]], specs, new),
    )


def _values_are_not_read_again(patched: Patch) -> None:
    def nothing(values: Values, _slots: Any, _places: Any, many: int) -> None:
        for kept in values.kept:
            kept.values += [None] * many
            if kept.touched is not None:
                kept.touched += [0] * many

    patched.setattr(Values, "_read", nothing)


def _entries_cannot_be_removed(patched: Patch) -> None:
    patched.setattr(Grouped, "remove", lambda *_: None)


def _maps_are_cleared_in_memory_only(patched: Patch) -> None:
    real = Maps.clear

    def clear(self: Maps, code: int) -> None:
        real(self, code)
        self._cleared.pop(code, None)

    patched.setattr(Maps, "clear", clear)


def _early_rows_see_the_new_watermark(patched: Patch) -> None:
    real = operator.ProcessOperator.tick

    def tick(self: Any, moment: Any) -> Any:
        return real(
            self, type(moment)(moment.watermark, moment.watermark, moment.clock, moment.clock)
        )

    patched.setattr(operator.ProcessOperator, "tick", tick)


def _ties_come_as_they_arrive(patched: Patch) -> None:
    def by_arrival(batches: Any) -> Any:
        only = {side: batch for side, batch in batches.items() if not side}
        order = np.argsort(only[0].column(TIMESTAMP).to_numpy(), kind="stable")
        return np.zeros(len(order), np.int64), order

    patched.setattr(ordered, "order_of", by_arrival)


def _undoing_forgets_timers(patched: Patch) -> None:
    patched.setattr(Alarms, "_unask", lambda _: None)


def _undoing_forgets_results(patched: Patch) -> None:
    patched.setattr(Results, "undo", lambda *_: None)


def _state_lives_a_little_longer(patched: Patch) -> None:
    real = Lifetime.is_alive
    patched.setattr(Lifetime, "is_alive", lambda self, time: real(self, time + 1))


def _every_shard_says_what_rules_say(patched: Patch) -> None:
    real = operator.Keyless

    def always_first(*said: Any, is_first: bool) -> Any:
        return real(*said, is_first=True)

    patched.setattr(operator, "Keyless", always_first)


PLAIN = {"ordered": False, "on_error": "fail"}
FAILING = {"ordered": False, "on_error": "dead_letter"}
CALM = {"shards": 1}
MOVING = {"shards": 2, "restores": {1: 3, 2: 1, 3: 2, 4: 1}}


@pytest.mark.parametrize(
    ("plant", "programs", "how"),
    [
        (_one_timer_is_two, written(states=["value"], **PLAIN), CALM),
        (_deleted_timers_fire, written(states=["value"], **PLAIN), CALM),
        (_timers_come_a_little_late, written(states=["value"], **PLAIN), CALM),
        (_a_shard_is_lost_when_state_moves, written(states=["list", "word"], **PLAIN), MOVING),
        (_values_are_not_read_again, written(states=["aggregating"], **PLAIN), CALM),
        (_entries_cannot_be_removed, written(states=["map"], **PLAIN), CALM),
        (_maps_are_cleared_in_memory_only, written(states=["map"], **PLAIN), CALM),
        (_early_rows_see_the_new_watermark, written(states=["value"], **PLAIN), CALM),
        (_ties_come_as_they_arrive, written(states=["list"], ordered=True, on_error="fail"), CALM),
        (_undoing_forgets_timers, written(states=["value"], **FAILING), CALM),
        (_undoing_forgets_results, written(states=["value"], **FAILING), CALM),
        (_state_lives_a_little_longer, written(states=["map_ttl", "list_ttl"], **PLAIN), CALM),
        (_every_shard_says_what_rules_say, written("broadcast", ["value"], **PLAIN), MOVING),
    ],
)
def test_planted_mistake_is_found(plant: Any, programs: Any, how: Any, monkeypatch: Patch) -> None:
    plant(monkeypatch)

    def is_found(program: Written) -> bool:
        return difference(program.node(), program.epochs, **how) is not None

    find(
        programs,
        is_found,
        settings=settings(
            RANDOM, max_examples=150, derandomize=False, database=None, phases=[Phase.generate]
        ),
        random=random.Random(1),
    )
