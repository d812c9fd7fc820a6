"""Which ring a test is in: the slowest thing it needs decides.

`pure` needs neither Java nor a server, `spark` a session, `services` real servers, `crash` kills processes of jobs.
"""

from collections.abc import Iterable
from typing import Final

__all__ = ["ORDER", "RINGS", "ring_of"]

#: From the slowest to the fastest.
RINGS: Final = ("crash", "services", "spark", "pure")
#: In which they run. The one process that has the session and the servers begins with them, the other with the longest tests, so
#: that none waits for the other at the end.
ORDER: Final = ("spark", "services", "crash", "pure")


def ring_of(marks: Iterable[str]) -> str:
    """The ring of a test with these marks."""
    named = set(marks)
    return next((ring for ring in RINGS if ring in named), "pure")
