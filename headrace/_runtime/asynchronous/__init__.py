"""Calls of coroutine functions: an event loop for each process, bounded numbers of calls, time-outs, attempts."""

from headrace._runtime.asynchronous.operator import MapAsync

__all__ = ["MapAsync"]
