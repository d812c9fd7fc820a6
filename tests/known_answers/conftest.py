"""Every known answer is asked twice: of the oracle, and of the engine that runs the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from headrace._graph.nodes import ERRORS, LATE, MAIN
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from tests.known_answers.timeline import step
from tests.oracle import oracle_of

Run = Callable[[Callable[[Any], Any], Sequence[StepEpoch]], Outputs]


def by_oracle(build: Callable[[Any], Any], epochs: Sequence[StepEpoch]) -> Outputs:
    oracle = oracle_of(step(build))
    results, late = oracle.run(epochs)
    return {MAIN: results, LATE: late, ERRORS: oracle.errors}


def by_engine(build: Callable[[Any], Any], epochs: Sequence[StepEpoch]) -> Outputs:
    found = StepHarness(step(build), 2).run(epochs, restores={1: 3, 3: 2}, crashes=[2])
    return {output: found.get(output, []) for output in (MAIN, LATE, ERRORS)}


@pytest.fixture(params=[by_oracle, by_engine], ids=["oracle", "engine"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param
