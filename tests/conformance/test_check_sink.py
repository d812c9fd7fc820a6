"""`check_sink` passes sinks that are right and finds the mistake in those that are not."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pyarrow.json as pj
import pytest

from headrace import testing
from headrace.connectors.files import FileSink

_spec = importlib.util.spec_from_file_location("sinks", Path(__file__).with_name("sinks.py"))
assert _spec is not None
assert _spec.loader is not None
sinks = importlib.util.module_from_spec(_spec)
sys.modules["sinks"] = sinks
_spec.loader.exec_module(sinks)


@pytest.mark.parametrize("kind", [sinks.Staged, sinks.Spooled])
def test_a_right_sink_passes(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    report = testing.check_sink(kind(path), read=lambda: sinks.rows_in(path), inside=3)
    assert report.sink == kind.__name__
    assert len(report.scenarios) > 35


def test_a_file_sink_passes(tmp_path: Path) -> None:
    def read() -> list[dict[str, Any]]:
        files = sorted((tmp_path / "out").glob("*.jsonl"))
        return [row for file in files for row in pj.read_json(file).to_pylist()]

    testing.check_sink(lambda: FileSink(tmp_path / "out", "jsonl"), read=read, inside=2)


@pytest.mark.parametrize(
    ("kind", "words"), sinks.WRONG, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_mistake_is_found(kind: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    with pytest.raises(AssertionError, match=words) as found:
        testing.check_sink(kind(path), read=lambda: sinks.rows_in(path), inside=16)
    assert kind.__name__ in str(found.value)
