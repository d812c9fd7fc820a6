"""Which ring a test is in: the slowest thing it needs decides.

`pure` needs neither Java nor a server, `spark` a session, `services` real servers, `crash` kills processes of jobs.
"""

from collections.abc import Iterable
from typing import Final

__all__ = ["RINGS", "ring_of"]

#: From the slowest to the fastest, which is also the order in which they run: short tests fill the gaps at the end.
RINGS: Final = ("crash", "services", "spark", "pure")


def ring_of(marks: Iterable[str]) -> str:
    """The ring of a test with these marks."""
    named = set(marks)
    return next((ring for ring in RINGS if ring in named), "pure")
