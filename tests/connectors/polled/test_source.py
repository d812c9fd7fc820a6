import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace import testing
from headrace.connectors import PolledSource, Span, memory
from headrace.errors import InputError


class Squares(PolledSource):
    schema = pa.schema([("n", pa.int64())])
    bounded = True

    def ends(self) -> Mapping[str, int | Span]:
        return {"a": 5, "b": 3}

    def rows(self, partition: str, start: int, end: int) -> pa.Table:
        return pa.table({"n": [n * n for n in range(start, end)]})


def test_a_job_reads_from_it(tmp_path: Path) -> None:
    env = hr.Environment("squares", checkpoint=tmp_path / "state")
    result = memory.MemorySink()
    env.from_source(Squares(), uid="in").sink_to(result, uid="out")
    testing.run_local(env, epochs=hr.Epochs(rows=2), crashes=[(1, "staged")])
    assert sorted(row["n"] for row in result.to_pylist()) == [0, 0, 1, 1, 4, 4, 9, 16]


def test_a_position_must_be_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Squares, "rows", lambda *_: pa.table({"n": [1]}))
    with pytest.raises(InputError, match="1 rows instead of 3"):
        list(Squares().read("a", 0, 3, tmp_path))
    monkeypatch.setattr(Squares, "rows", lambda *_: pa.table({"m": [1]}))
    with pytest.raises(InputError, match="columns"):
        list(Squares().read("a", 0, 1, tmp_path))


class Growing(Squares):
    bounded = False
    poll_every = timedelta(milliseconds=1)

    def __init__(self) -> None:
        self.answers: list[object] = [1, 2, OSError("away"), 3, ValueError("broken")]
        self.told = threading.Event()

    def ends(self) -> Mapping[str, int | Span]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            if isinstance(answer, ValueError):
                self.told.set()
            raise answer
        assert isinstance(answer, int)
        return {"a": answer}


def test_it_is_asked_again_and_a_system_that_is_away_is_waited_for(tmp_path: Path) -> None:
    source = Growing()
    enumerator = source.enumerator(tmp_path)
    assert source.told.wait(20)
    enumerator.close()
    assert source.answers == []
    with pytest.raises(ValueError, match="broken"):
        enumerator.spans()
