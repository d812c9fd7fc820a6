"""Tools to test with: a local runner, in-band marks for sources, reference answers, proofs of sinks and sources.

result = run_local(env, epochs=Epochs(rows=100), crashes=[(2, "staged")])
"""

from headrace.testing.conformance import SinkReport, SourceReport, check_sink, check_source
from headrace.testing.local import LocalEpoch, LocalResult, run_local
from headrace.testing.marks import cut, fail
from headrace.testing.oracle import OracleEpoch, WindowOracle

__all__ = [
    "LocalEpoch",
    "LocalResult",
    "OracleEpoch",
    "SinkReport",
    "SourceReport",
    "WindowOracle",
    "check_sink",
    "check_source",
    "cut",
    "fail",
    "run_local",
]
