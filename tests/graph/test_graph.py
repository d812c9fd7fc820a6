import pyarrow as pa
import pytest

from headrace._graph.graph import Graph, sources_of, upstream
from headrace._graph.nodes import Port, Union
from headrace.expressions import col

ROWS = pa.schema([("a", pa.int64())])


def test_numbers_are_places():
    graph = Graph()
    added = [graph.add(Union, inputs=(), schema=ROWS) for _ in range(3)]
    assert [node.id for node in added] == [0, 1, 2]
    assert graph.nodes == tuple(added)


def test_generated_uids_count_per_verb_and_avoid_taken_ones():
    graph = Graph()
    graph.add(Union, uid="union-2", inputs=(), schema=ROWS)
    uids = [graph.add(Union, inputs=(), schema=ROWS).uid for _ in range(3)]
    assert uids == ["union-1", "union-3", "union-4"]
    assert [node.uid for node in graph.generated] == uids


def test_a_new_map_does_not_rename_a_filter(bids):
    plain = bids.filter(col("price") > 1).uid
    assert plain == "filter-1"
    assert bids.map_batches(lambda batch: batch).filter(col("price") > 2).uid == "filter-2"


def test_where_is_the_line_of_the_users_call(bids):
    stream = bids.select("price")
    line = test_where_is_the_line_of_the_users_call.__code__.co_firstlineno + 1
    assert stream._graph.nodes[-1].where == f"test_graph.py:{line}"


@pytest.fixture
def diamond(bids):
    dear = bids.filter(col("price") > 9, uid="dear")
    bids.filter(col("price") < 2, uid="aside")
    return bids.union(dear, uid="both")


def test_upstream_is_what_rows_pass_on_their_way(diamond):
    nodes = diamond._graph.nodes
    passed = {nodes[port.node].uid for port in upstream(nodes, [diamond._port])}
    assert passed == {"bids", "dear", "both"}


def test_sources_of_a_port_are_found_once(diamond):
    assert [node.uid for node in sources_of(diamond._graph.nodes, [diamond._port])] == ["bids"]


def test_upstream_of_nothing_is_nothing():
    assert upstream((), []) == set()
    assert sources_of((), []) == ()


def test_ports_of_one_node_are_kept_apart(bids):
    assert upstream(bids._graph.nodes, [Port(0, "errors")]) == {Port(0, "errors")}
