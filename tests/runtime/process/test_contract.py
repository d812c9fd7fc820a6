"""Process functions of every kind, with every kind of state, keep the contract of keyed operators."""

from __future__ import annotations

from tests.runtime.process import written
from tests.runtime.process.process_contract import ProcessContract, TwoInputs


class TestValue(ProcessContract):
    function = written.KeepsValue


class TestList(ProcessContract):
    function = written.KeepsList


class TestMap(ProcessContract):
    function = written.KeepsMap


class TestReducing(ProcessContract):
    function = written.KeepsReduced


class TestAggregating(ProcessContract):
    function = written.KeepsAggregate


class TestDescriptors(ProcessContract):
    function = written.KeepsAll


class TestClockTimers(ProcessContract):
    # The clock has not come to the timers of the last rows.
    keeps_a_rest = True
    function = written.OnTheClock


class TestConnected(TwoInputs):
    function = written.Meets
    kind = "co"
    keys = (("key",), ("name",))


class TestBroadcast(TwoInputs):
    # The rules stay.
    keeps_a_rest = True
    function = written.Ruled
    kind = "broadcast"
    keys = (("key",), ())


class TestBroadcastWithoutKeys(TwoInputs):
    keeps_a_rest = True
    dead_letters = 0
    function = written.RuledRows
    kind = "broadcast"
    keys = ((), ())
