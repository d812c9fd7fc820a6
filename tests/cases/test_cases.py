"""Every golden case gives its expected output however its input is cut, wherever the job crashes, on any number of shards."""

import pytest

from tests.cases.harness.case import Case
from tests.cases.harness.checking import CaseFailed, check
from tests.cases.harness.discovery import all_cases
from tests.examples import EXPLORING

SEEDS = 80 if EXPLORING else 3


def _parameter(name: str, case: Case) -> object:
    marks = [pytest.mark.xfail(reason=case.xfail, raises=CaseFailed)] if case.xfail else []
    return pytest.param(name, case, id=name, marks=marks)


@pytest.mark.parametrize(("name", "case"), [_parameter(*found) for found in all_cases()])
def test_every_run_of_a_case_gives_its_expected_output(name: str, case: Case) -> None:
    check(case, name, seeds=SEEDS)
