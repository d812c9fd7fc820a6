"""References for joins: all pairs, one by one, in plain Python.

Each knows the rules of its kind and nothing of the engine, and is given the epochs and watermarks that the engine used.
"""

from tests.oracle.joins.asof import AsOfOracle
from tests.oracle.joins.broadcast import BroadcastOracle
from tests.oracle.joins.extreme import ExtremeOracle
from tests.oracle.joins.interval import IntervalOracle
from tests.oracle.joins.lookup import lookup_join
from tests.oracle.joins.regular import RegularOracle
from tests.oracle.joins.top import TopPairOracle
from tests.oracle.joins.window import WindowJoinOracle

__all__ = [
    "AsOfOracle",
    "BroadcastOracle",
    "ExtremeOracle",
    "IntervalOracle",
    "RegularOracle",
    "TopPairOracle",
    "WindowJoinOracle",
    "lookup_join",
]
