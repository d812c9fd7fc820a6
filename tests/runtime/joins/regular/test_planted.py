"""The proof can fail: mistakes that are put into the engine on purpose are found by random joins."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import find, settings

from headrace._runtime.joins.regular import delta, phase, store
from headrace._runtime.joins.regular.phase import Phase
from headrace._runtime.joins.regular.store import KeptRows
from headrace._runtime.ordering import first_places
from tests.runtime.joins.regular.cases import RANDOM, Drawn, compare, joins, keeps_of_one
from tests.runtime.windows.cases import disturbances

Patch = pytest.MonkeyPatch


def _who_ran_out_is_forgotten(patched: Patch) -> None:
    patched.setattr(store, "_counts_partners", lambda *_: False)


def _partners_are_counted_once(patched: Patch) -> None:
    patched.setattr(Phase, "settle", lambda _: None)


def _rows_live_a_little_longer(patched: Patch) -> None:
    real = KeptRows.expire
    patched.setattr(KeptRows, "expire", lambda self, a, b: real(self, a - 1, b - 1))


def _what_came_and_went_is_seen(patched: Patch) -> None:
    def seen(_: Any, minus: Any) -> Any:
        return np.flatnonzero(~minus), np.flatnonzero(minus)

    patched.setattr(delta, "cancelled", seen)


def _stages_are_mixed_up(patched: Patch) -> None:
    class Late:
        BEFORE = BETWEEN = AFTER = object()

    patched.setattr(phase, "_Stage", Late)


def _the_last_wins_a_tie(patched: Patch) -> None:
    def best(keep: Any, kept: Any, batch: Any, codes: Any, old: Any) -> Any:
        return len(codes) - 1 - first_places(codes[::-1], len(old))

    patched.setattr(delta, "_best", best)


def _waiting_rows_are_spent_too_early(patched: Patch) -> None:
    patched.setattr(Phase, "_met", lambda _, look: np.ones(len(look.codes), np.bool_))


@pytest.mark.parametrize(
    ("plant", "drawn"),
    [
        (_who_ran_out_is_forgotten, joins(hows=["left", "full", "semi", "anti"], most=2)),
        (_partners_are_counted_once, joins(hows=["left", "full", "semi", "anti"], most=2)),
        (_rows_live_a_little_longer, joins()),
        (_what_came_and_went_is_seen, joins()),
        (_stages_are_mixed_up, joins(hows=["left", "right", "full"])),
        (_the_last_wins_a_tie, keeps_of_one()),
        (_waiting_rows_are_spent_too_early, joins(hows=["semi", "anti"])),
    ],
)
def test_planted_mistake_is_found(
    plant: Callable[[Patch], None], drawn: Any, monkeypatch: Patch
) -> None:
    plant(monkeypatch)

    def is_wrong(case: tuple[Drawn, Any]) -> bool:
        try:
            compare(case[0].node, case[0].epochs, case[0].where, **dict(case[1]))
        except AssertionError:
            return True
        return False

    cases = drawn.flatmap(lambda one: disturbances().map(lambda how: (one, how)))
    limits = settings(RANDOM, max_examples=400, derandomize=False, database=None)
    find(cases, is_wrong, settings=limits, random=random.Random(1))
