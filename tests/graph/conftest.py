"""The environment, source and sink of the builders' tests."""

from tests.builders.conftest import bids, env, sink, source, strategy

__all__ = ["bids", "env", "sink", "source", "strategy"]
