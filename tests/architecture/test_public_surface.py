"""The names that users may rely on. A change here is a line in the change log."""

import importlib
import pkgutil
from pathlib import Path

import pytest

import headrace
from headrace import testing

ROOT = Path(__file__).parents[2]

FACADE = """
AggregateFunction BroadcastProcessFunction BroadcastStream CoProcessFunction ConnectedStreams KeyedBatchFunction KeyedBroadcastProcessFunction
KeyedCoProcessFunction KeyedProcessFunction ProcessFunction ReduceFunction
DeliveryGuarantee Environment Epochs Expression JobHandle KeyedStream OutputTag ProcessWindowFunction
Restart Retry Stream WatermarkGenerator WatermarkStrategy
WindowedStream approx_count_distinct approx_quantile approx_quantiles approx_top avg coalesce col collect connectors count count_distinct errors evictors first last lit lookups max max_by min min_by
read_state state stddev sum triggers variance when why windows
""".split()

TESTING = """
Database Killed LocalEpoch LocalResult Log LogRecord OpenTransaction OperatorHarness SinkReport SourceReport check_sink check_source cut fail run_local
""".split()


def public_modules() -> list[str]:
    """Every module without an underscore in its path."""
    walked = pkgutil.walk_packages([str(ROOT / "headrace")], "headrace.")
    return sorted(m.name for m in walked if not any(p.startswith("_") for p in m.name.split(".")))


def test_the_facade_is_exactly_this() -> None:
    assert sorted(headrace.__all__) == sorted(FACADE)


def test_the_tools_to_test_with_are_exactly_these() -> None:
    assert sorted(testing.__all__) == sorted(TESTING)


def test_the_facade_has_what_it_lists() -> None:
    for name in headrace.__all__:
        assert getattr(headrace, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        headrace.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", public_modules())
def test_a_public_module_lists_its_names(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, "a module says what it is for"
    assert list(module.__all__), "a module lists its names"
    assert [n for n in module.__all__ if not hasattr(module, n)] == []
