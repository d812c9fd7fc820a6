"""Headrace: the stream-processing model of Apache Flink for Python, executed by Apache Spark.

This module is a lazy facade: a name is imported when it is first used. Workers import `headrace` in every
process, so nothing here may load PySpark, and nothing inside the package imports the facade.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace import connectors, errors, evictors, lookups, state, triggers, windows
    from headrace._jobs.handle import JobHandle, why
    from headrace._spark.state_reader import read_state
    from headrace.aggregates import (
        avg,
        collect,
        count,
        count_distinct,
        first,
        last,
        max,
        max_by,
        min,
        min_by,
        stddev,
        sum,
        variance,
    )
    from headrace.approximate import (
        approx_count_distinct,
        approx_quantile,
        approx_quantiles,
        approx_top,
    )
    from headrace.config import Epochs, Restart, Retry
    from headrace.connected import BroadcastStream, ConnectedStreams
    from headrace.endpoints import DeliveryGuarantee
    from headrace.environment import Environment
    from headrace.expressions import Expression, coalesce, col, lit, when
    from headrace.functions import AggregateFunction, ProcessWindowFunction
    from headrace.keyed import KeyedStream
    from headrace.outputs import OutputTag
    from headrace.process_functions import (
        BroadcastProcessFunction,
        CoProcessFunction,
        KeyedBatchFunction,
        KeyedBroadcastProcessFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        ProcessFunction,
        ReduceFunction,
    )
    from headrace.stream import Stream
    from headrace.watermarks import WatermarkGenerator, WatermarkStrategy
    from headrace.windowed import WindowedStream

__all__ = [
    "AggregateFunction",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CoProcessFunction",
    "ConnectedStreams",
    "DeliveryGuarantee",
    "Environment",
    "Epochs",
    "Expression",
    "JobHandle",
    "KeyedBatchFunction",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "OutputTag",
    "ProcessFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "Restart",
    "Retry",
    "Stream",
    "WatermarkGenerator",
    "WatermarkStrategy",
    "WindowedStream",
    "approx_count_distinct",
    "approx_quantile",
    "approx_quantiles",
    "approx_top",
    "avg",
    "coalesce",
    "col",
    "collect",
    "connectors",
    "count",
    "count_distinct",
    "errors",
    "evictors",
    "first",
    "last",
    "lit",
    "lookups",
    "max",
    "max_by",
    "min",
    "min_by",
    "read_state",
    "state",
    "stddev",
    "sum",
    "triggers",
    "variance",
    "when",
    "why",
    "windows",
]

__version__ = "0.1.0"

_HOMES = {
    "_jobs.handle": "JobHandle why",
    "_spark.state_reader": "read_state",
    "aggregates": (
        "avg collect count count_distinct first last max max_by min min_by stddev sum variance"
    ),
    "approximate": "approx_count_distinct approx_quantile approx_quantiles approx_top",
    "config": "Epochs Restart Retry",
    "connected": "BroadcastStream ConnectedStreams",
    "endpoints": "DeliveryGuarantee",
    "environment": "Environment",
    "expressions": "Expression coalesce col lit when",
    "functions": "AggregateFunction ProcessWindowFunction",
    "keyed": "KeyedStream",
    "outputs": "OutputTag",
    "process_functions": (
        "BroadcastProcessFunction CoProcessFunction KeyedBatchFunction KeyedBroadcastProcessFunction"
        " KeyedCoProcessFunction KeyedProcessFunction ProcessFunction ReduceFunction"
    ),
    "stream": "Stream",
    "watermarks": "WatermarkGenerator WatermarkStrategy",
    "windowed": "WindowedStream",
}
_MODULES = frozenset("connectors errors evictors lookups state triggers windows".split())
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"headrace.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    value = getattr(import_module(f"headrace.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
