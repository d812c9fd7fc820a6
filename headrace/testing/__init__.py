"""Tools to test pipelines with: a local runner, in-band marks for sources, and reference answers.

result = run_local(env, epochs=Epochs(rows=100), crashes=[(2, "staged")])
"""

from headrace.testing.local import LocalEpoch, LocalResult, run_local
from headrace.testing.marks import cut, fail
from headrace.testing.oracle import OracleEpoch, WindowOracle

__all__ = [
    "LocalEpoch",
    "LocalResult",
    "OracleEpoch",
    "WindowOracle",
    "cut",
    "fail",
    "run_local",
]
