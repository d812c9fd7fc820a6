"""Checks a case in all of its runs; a failure says which run differs, how, and what repeats it."""

from __future__ import annotations

from tests.cases.harness.case import Case
from tests.cases.harness.comparing import differences
from tests.cases.harness.oracles import by_oracle
from tests.cases.harness.playing import play
from tests.cases.harness.runs import Run, runs_of

__all__ = ["CaseFailed", "check"]


class CaseFailed(AssertionError):
    """A run gave other rows than the case expects."""


def check(case: Case, name: str, *, seeds: int) -> None:
    """Raise if one of its runs gives something else than the case says."""
    __tracebackhide__ = True
    failed = [(run, problem) for run in runs_of(case, seeds) if (problem := problem_of(case, run))]
    if failed:
        run, problem = failed[0]
        runs = ", ".join(run.name for run, _ in failed)
        raise CaseFailed(f"{name}\n{problem}\n{run}\nruns that differ: {runs}")


def problem_of(case: Case, run: Run) -> str:
    """How a run, or the oracle that is given its epochs, differs; nothing if they do not."""
    played, fewest = play(case, run), run.name == "whole"
    problem = differences(case, played.rows, fewest=fewest)
    said = by_oracle(case, run, played)
    if problem or said is None:
        return problem
    doubt = differences(case, said, fewest=fewest)
    return doubt and f"the engine agrees, the oracle does not: {doubt}"
