"""Marks between the rows of a memory source: end the epoch here, or fail here."""

from dataclasses import dataclass

from headrace.errors import BuildError

__all__ = ["Cut", "Fail"]


@dataclass(frozen=True, slots=True)
class Cut:
    """An epoch ends here and the next one begins."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Reading the row behind this mark (the last row, if it is the end) fails so many times."""

    message: str = "the test asked for a failure"
    times: int = 1

    def __post_init__(self) -> None:
        """Refuse a failure that never happens."""
        if self.times < 1:
            raise BuildError(f"a failure must happen at least once, not {self.times} times")
