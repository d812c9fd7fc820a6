"""The rings of the test suite: which test is in which, what each may take, and what a run took."""

from tests.rings.membership import RINGS, ring_of
from tests.rings.plugin import RingPlugin
from tests.rings.sharing import SharingScheduler

__all__ = ["RINGS", "RingPlugin", "SharingScheduler", "ring_of"]
