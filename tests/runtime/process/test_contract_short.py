"""State with a time to live keeps the contract, and leaves nothing behind."""

from __future__ import annotations

from tests.runtime.process import written
from tests.runtime.process.process_contract import Failing, ProcessContract


class TestShortValue(ProcessContract):
    function = written.ShortValue


class TestShortList(ProcessContract):
    function = written.ShortList


class TestShortMap(ProcessContract):
    function = written.ShortMap


class TestShortReducing(ProcessContract):
    # By the clock the last rows have just come.
    keeps_a_rest = True
    function = written.ShortReduced


class TestShortAggregating(ProcessContract):
    function = written.ShortAggregate


class TestFailingShortMap(Failing):
    keeps_a_rest = False
    function = written.ShortMap
