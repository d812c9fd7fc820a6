import pyarrow as pa
import pytest

from headrace._graph.changes import carries_changes
from headrace.errors import BuildError
from headrace.expressions import col
from tests.builders.conftest import BIDS, Nothing


class Changes(Nothing):
    carries_changes = True


@pytest.fixture
def changes(env, strategy):
    return env.from_source(
        Changes(BIDS.append(pa.field("change", pa.string()))), watermarks=strategy
    )


def test_a_source_says_that_its_rows_withdraw_others(bids, changes):
    dear = changes.filter(col("price") > 9)
    assert carries_changes(dear._graph.nodes, dear._port)
    assert not carries_changes(bids._graph.nodes, bids._port)


def test_the_column_that_says_so_may_not_get_lost(changes):
    with pytest.raises(BuildError, match="withdraws earlier results"):
        changes.select("price")


def test_a_function_makes_of_changes_what_it_likes(changes):
    def kept(row, ctx):
        yield row

    passed = changes.process(kept, schema=changes.schema)
    assert carries_changes(passed._graph.nodes, passed._port)
    plain = changes.process(kept, schema=BIDS)
    assert not carries_changes(plain._graph.nodes, plain._port)
    with pytest.raises(BuildError, match="withdraws earlier results"):
        changes.key_by("auction").reduce(lambda a, b: a or b)
