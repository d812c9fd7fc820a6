"""`check_sink` passes sinks that are right and finds the mistake in those that are not."""

from pathlib import Path

import pytest

from tests.conformance import sinks
from tests.conformance.sink_checks import check_file_sink, check_named
from tests.small_process import in_small_process


@pytest.mark.parametrize("kind", ["Staged", "Spooled"])
def test_a_right_sink_passes(kind: str, tmp_path: Path) -> None:
    report = in_small_process(check_named, kind, tmp_path / "orders.db", 3)
    assert report.sink == kind
    assert len(report.scenarios) > 35


def test_a_file_sink_passes(tmp_path: Path) -> None:
    in_small_process(check_file_sink, tmp_path / "out")


@pytest.mark.parametrize(
    ("kind", "words"),
    [pytest.param(one.__name__, words, id=one.__name__) for one, words in sinks.WRONG],
)
def test_a_mistake_is_found(kind: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=words) as found:
        in_small_process(check_named, kind, tmp_path / "orders.db", 16)
    assert kind in str(found.value)
