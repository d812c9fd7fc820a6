"""From a trigger as users write it to the machine that the oracle runs."""

from __future__ import annotations

from headrace.testing.oracle.compositions import Purging
from headrace.testing.oracle.epochs import Span
from headrace.testing.oracle.machines import AtEnd, CountRows, Machine
from headrace.testing.oracle.written import Written
from headrace.triggers import Trigger
from headrace.windows import Assigner, Count

__all__ = ["machine_of"]


def machine_of(trigger: Trigger | None, span: Span, assigner: Assigner) -> Machine:
    """The machine of one window of one key."""
    if trigger is None:
        return _default(span, assigner)
    return Written(span, trigger)


def _default(span: Span, assigner: Assigner) -> Machine:
    if isinstance(assigner, Count):
        every = CountRows(span, assigner.slide or assigner.size)
        # Sliding windows need the rows again; an evictor keeps them few.
        return every if assigner.slide else Purging([every])
    return AtEnd(span)
