"""Rules that every shard has: the engine does what the interpreter does, on any number of shards."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from tests.runtime.process.cases import RANDOM, Written, compare, written
from tests.runtime.process.programs import STATES
from tests.runtime.windows.cases import disturbances

FOREVER = tuple(name for name in STATES if "_" not in name)


@RANDOM
@given(written("broadcast", states=FOREVER, ordered=False, on_error="fail"), disturbances())
def test_rules_are_the_same_for_all_keys_and_shards(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)
