"""Tools to test with: a local runner, a harness of one step, a database and a log in memory, proofs of sinks and sources.

result = run_local(env, epochs=Epochs(rows=100), crashes=[(2, "staged")])
"""

from headrace.testing.conformance import SinkReport, SourceReport, check_sink, check_source
from headrace.testing.database import Database
from headrace.testing.local import LocalEpoch, LocalResult, run_local
from headrace.testing.log import Killed, Log, LogRecord, OpenTransaction
from headrace.testing.marks import cut, fail
from headrace.testing.operator_harness import OperatorHarness

__all__ = [
    "Database",
    "Killed",
    "LocalEpoch",
    "LocalResult",
    "Log",
    "LogRecord",
    "OpenTransaction",
    "OperatorHarness",
    "SinkReport",
    "SourceReport",
    "check_sink",
    "check_source",
    "cut",
    "fail",
    "run_local",
]
