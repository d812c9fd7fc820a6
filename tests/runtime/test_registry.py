"""Every node of the graph has an operator."""

import pytest

from headrace._graph import join_nodes, nodes
from headrace._runtime import registry
from headrace.errors import EngineError

#: Steps of which others are special cases.
ALSO_STEPS = {join_nodes.RegularJoin, join_nodes.WindowJoin}
RUN_BY_SEGMENTS = {nodes.AssignTimestamps, nodes.ReadSource, nodes.WriteSink}


def test_every_kind_of_node_is_registered() -> None:
    kinds = set(_leaves(nodes.Node)) - RUN_BY_SEGMENTS
    stateless = {kind for kind in kinds if not kind.keyed}
    keyed = kinds - stateless
    assert set(registry._STATELESS) == stateless
    assert set(registry._FEEDERS) == set(registry._KEYED) == set(registry._TABLES) == keyed


def _leaves(kind: type[nodes.Node]) -> list[type[nodes.Node]]:
    below = kind.__subclasses__()
    own = [] if below and kind not in ALSO_STEPS else [kind]
    return own + [leaf for sub in below for leaf in _leaves(sub)]


def test_node_without_an_operator_is_named() -> None:
    node = nodes.WriteSink(id=1, uid="out", inputs=(), schema=None, sink=None)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="sink step 'out'"):
        registry.stateless(node)
