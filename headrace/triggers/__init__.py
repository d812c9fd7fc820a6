"""When windows fire: at their end, earlier, later, by number of rows, or as the user's own class says.

event_time()      at the end; the default        early(every=...).late(...)    before, at and behind the end
count(n)          every n rows                   continuous_event_time(every)  again and again
any_of, all_of, after_each, repeatedly, purging, a.or_finally(b)               triggers made of triggers
"""

from headrace.triggers.composed import after_each, all_of, any_of, or_finally, purging, repeatedly
from headrace.triggers.counted import count, never
from headrace.triggers.early_late import EarlyLate, early
from headrace.triggers.timed import (
    continuous_event_time,
    continuous_processing_time,
    end_of_input,
    event_time,
    processing_time,
)
from headrace.triggers.trigger import Trigger, TriggerContext, TriggerResult

__all__ = [
    "EarlyLate",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "after_each",
    "all_of",
    "any_of",
    "continuous_event_time",
    "continuous_processing_time",
    "count",
    "early",
    "end_of_input",
    "event_time",
    "never",
    "or_finally",
    "processing_time",
    "purging",
    "repeatedly",
]
