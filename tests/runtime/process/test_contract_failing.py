"""Functions that fail on some rows and timers leave nothing behind of those."""

from __future__ import annotations

from tests.runtime.process import written
from tests.runtime.process.process_contract import Failing


class TestFailingValue(Failing):
    function = written.KeepsValue


class TestFailingList(Failing):
    function = written.KeepsList


class TestFailingMap(Failing):
    function = written.KeepsMap


class TestFailingDescriptors(Failing):
    function = written.KeepsAll


class TestFailingClockTimers(Failing):
    function = written.OnTheClock
