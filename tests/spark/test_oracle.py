"""The same random pipelines as on the local runner, on Spark, against the same reference."""

from pathlib import Path

import pytest
from hypothesis import Phase, given

from tests.examples import examples
from tests.local.cases import Case, build, expected, found
from tests.local.test_oracle import cases
from tests.spark.conftest import logged_epochs

#: Spark keeps the offsets of about so many epochs, and each costs a third of a second.
MOST_EPOCHS = 12
EXAMPLES = 8


def few_epochs(case: Case) -> Case:
    """The case, cut into no more epochs than Spark's log remembers."""
    longest = max(len(partition) for stream in case.streams for partition in stream)
    parts = max(len(stream) for stream in case.streams)
    least = -(-longest * parts // MOST_EPOCHS)
    return Case(**{**vars(case), "epoch_rows": max(case.epoch_rows, least), "rescale": {}})


@examples(EXAMPLES, phases=[Phase.generate])
@given(case=cases())
def test_spark_agrees_with_the_reference(
    case: Case, tmp_path_factory: pytest.TempPathFactory
) -> None:
    case = few_epochs(case)
    checkpoint: Path = tmp_path_factory.mktemp("case") / "state"
    env, sinks = build(case, checkpoint=checkpoint, shards=case.shards)
    summary = env.execute()
    assert summary.finished
    epochs = logged_epochs(checkpoint)
    assert [epoch.number for epoch in epochs] == list(range(summary.epoch + 1))
    assert found(sinks) == expected(case, epochs)
