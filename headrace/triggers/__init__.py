"""When windows fire: at their end, earlier, later, by number of rows, or as the user's own class says."""

from headrace.triggers.trigger import Trigger, TriggerContext, TriggerResult

__all__ = ["Trigger", "TriggerContext", "TriggerResult"]
