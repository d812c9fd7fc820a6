"""References for joins: all pairs, one by one, in plain Python.

Each knows the rules of its kind and nothing of the engine, and is given the epochs and watermarks that the engine used.
"""

from headrace.testing.oracle.joins.asof import AsOfOracle
from headrace.testing.oracle.joins.broadcast import BroadcastOracle
from headrace.testing.oracle.joins.extreme import ExtremeOracle
from headrace.testing.oracle.joins.interval import IntervalOracle
from headrace.testing.oracle.joins.lookup import lookup_join
from headrace.testing.oracle.joins.regular import RegularOracle
from headrace.testing.oracle.joins.top import TopPairOracle
from headrace.testing.oracle.joins.window import WindowJoinOracle

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
