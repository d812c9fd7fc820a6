"""Every node of the graph has an operator."""

import pytest

from headrace._graph import nodes
from headrace._runtime import registry
from headrace.errors import EngineError

RUN_BY_SEGMENTS = {nodes.AssignTimestamps, nodes.ReadSource, nodes.WriteSink}


def test_every_kind_of_node_is_registered() -> None:
    kinds = set(_leaves(nodes.Node)) - RUN_BY_SEGMENTS
    stateless = {kind for kind in kinds if not kind.keyed}
    keyed = kinds - stateless
    assert set(registry._STATELESS) == stateless
    assert set(registry._FEEDERS) == set(registry._KEYED) == set(registry._TABLES) == keyed


def _leaves(kind: type[nodes.Node]) -> list[type[nodes.Node]]:
    below = kind.__subclasses__()
    return [leaf for sub in below for leaf in _leaves(sub)] if below else [kind]


def test_node_without_an_operator_is_named() -> None:
    node = nodes.WriteSink(id=1, uid="out", inputs=(), schema=None, sink=None)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="sink step 'out'"):
        registry.stateless(node)
