"""Windows as values: which rows belong together. Made here, checked here; state and firing are elsewhere.

Tumbling(size)             side by side                    Session(gap)      as long as rows keep coming
Hopping(size, slide)       overlapping                     Count(n)          every n rows of a key
Cumulating(size, step)     growing up to a size            LookBack(size)    each row and what came before it
Global()                   everything                      WindowAssigner    the user's own
"""

from headrace.windows.aligned import Cumulating, Hopping, Tumbling
from headrace.windows.assigner import Assigner, Global, TimeWindow, WindowAssigner
from headrace.windows.by_row import Count, LookBack
from headrace.windows.grid import Window, windows_of
from headrace.windows.session import Session

__all__ = [
    "Assigner",
    "Count",
    "Cumulating",
    "Global",
    "Hopping",
    "LookBack",
    "Session",
    "TimeWindow",
    "Tumbling",
    "Window",
    "WindowAssigner",
    "windows_of",
]
