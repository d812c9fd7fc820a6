"""A task that failed is forgotten by all of its sinks, and what failed it is what is told."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from headrace._runtime import staging as staging_module
from headrace._runtime.staging import Staging
from headrace.endpoints import Receipt, Stager
from headrace.errors import UserCodeError


class Notes(Stager):
    def __init__(self, *, fails: bool) -> None:
        self.fails, self.aborted = fails, 0

    def write(self, batch: pa.RecordBatch) -> None:
        pass

    def close(self) -> Sequence[Receipt]:
        return ()

    def abort(self) -> None:
        self.aborted += 1
        if self.fails:
            raise UserCodeError("abort failed")


def test_a_sink_that_cannot_forget_does_not_keep_others_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[tuple[str, ...]] = []
    monkeypatch.setattr(staging_module.LOG, "exception", lambda *words: said.append(words))
    stagers = {"a": Notes(fails=True), "b": Notes(fails=False)}
    staging = Staging(dict.fromkeys(stagers), 0, "task")  # type: ignore[arg-type]
    for uid, stager in stagers.items():
        sink: Any = SimpleNamespace(stager=lambda *_, made=stager: made)
        staging.write(SimpleNamespace(uid=uid, sink=sink), pa.record_batch({"v": [1]}))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the row is bad"):  # noqa: PT012 - as tasks do it
        try:
            raise ValueError("the row is bad")
        except BaseException:
            staging.abort()
            raise
    assert [stager.aborted for stager in stagers.values()] == [1, 1]
    assert [uid for _, uid in said] == ["a"]
