"""Every known answer is asked twice: of the oracle, and of the engine that runs the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from headrace._graph.nodes import ERRORS, LATE, MAIN
from headrace.testing import OracleEpoch
from headrace.testing.oracle import oracle_of
from tests.known_answers.timeline import step
from tests.runtime.keyed_harness import KeyedHarness, Outputs

Run = Callable[[Callable[[Any], Any], Sequence[OracleEpoch]], Outputs]


def by_oracle(build: Callable[[Any], Any], epochs: Sequence[OracleEpoch]) -> Outputs:
    oracle = oracle_of(step(build))
    results, late = oracle.run(epochs)
    return {MAIN: results, LATE: late, ERRORS: oracle.errors}


def by_engine(build: Callable[[Any], Any], epochs: Sequence[OracleEpoch]) -> Outputs:
    found = KeyedHarness(step(build), 2).run(epochs, restores={1: 3, 3: 2}, crashes=[2])
    return {output: found.get(output, []) for output in (MAIN, LATE, ERRORS)}


@pytest.fixture(params=[by_oracle, by_engine], ids=["oracle", "engine"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param
