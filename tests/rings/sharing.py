"""How tests are distributed to processes: those that share a Spark session and servers all run in one process, the others one by one.

A second session and a second set of servers would cost more than half a minute of both cores, and every client of a server
leaves threads in its process.
"""

from xdist.scheduler import LoadScopeScheduling

__all__ = ["SharingScheduler"]

_SHARING = ("tests/spark/", "tests/services/")


class SharingScheduler(LoadScopeScheduling):
    """For `--dist loadscope --no-loadscope-reorder`."""

    def _split_scope(self, nodeid: str) -> str:
        return "sharing" if nodeid.startswith(_SHARING) else nodeid
