import dataclasses
from pathlib import Path

import pytest

from headrace._graph import join_nodes, nodes
from headrace._plan import capabilities
from headrace._plan.capabilities import OPERATIONS, TARGETS, check_supported, page
from headrace.errors import BuildError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "support.md"


def test_every_operation_has_one_line():
    declared = [operation.node for operation in OPERATIONS]
    named = {**vars(nodes), **vars(join_nodes)}
    kinds = {kind for kind in named.values() if isinstance(kind, type)}
    both = (join_nodes.RegularJoin, join_nodes.WindowJoin)
    operations = [
        k for k in kinds if issubclass(k, nodes.Node) and (not k.__subclasses__() or k in both)
    ]
    assert sorted(declared, key=repr) == sorted(operations, key=repr)


def test_the_page_is_what_the_code_says():
    assert PAGE.read_text() == page(), "run: python -m headrace._plan.capabilities > " + str(PAGE)


def test_all_of_it_runs_on_every_target(env, bids, sink):
    bids.sink_to(sink)
    for target in TARGETS:
        check_supported(env.graph.nodes, target)


def test_a_step_that_a_target_lacks_is_refused_with_those_that_have_it(
    env, bids, sink, monkeypatch
):
    bids.sink_to(sink, uid="out")
    lacking = tuple(
        dataclasses.replace(operation, spark="planned")
        if operation.node is nodes.WriteSink
        else operation
        for operation in OPERATIONS
    )
    monkeypatch.setattr(capabilities, "OPERATIONS", lacking)
    with pytest.raises(
        BuildError, match=r"sink 'out' .* on 'spark' \(planned\); it can on: local\."
    ):
        check_supported(env.graph.nodes, "spark")
