"""Marks to put between the rows of a `MemorySource`.

MemorySource([Order(1, now), cut(), Order(2, now), fail("disk on fire"), Order(3, now)])
"""

from headrace.connectors.memory import Cut, Fail

__all__ = ["cut", "fail"]


def cut() -> Cut:
    """The epoch ends here, and the next one begins with the row behind."""
    return Cut()


def fail(message: str = "the test asked for a failure", *, times: int = 1) -> Fail:
    """Reading the row behind fails so many times; the epoch is run again."""
    return Fail(message, times)
