"""Functions are opened once a process and closed when it ends."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from headrace._runtime.lifecycle import close_all, opened, working
from headrace.errors import UserCodeError


@dataclass  # hence without a hash
class Model:
    calls: list[str]
    loaded: str = ""

    def open(self, ctx: str) -> None:
        self.calls.append(f"open {ctx}")
        self.loaded = ctx

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture(autouse=True)
def _nothing_open() -> Iterator[None]:
    close_all()
    yield
    close_all()


def test_open_is_called_once_and_close_once() -> None:
    model = Model([])
    assert opened(model, "first", "it") is model
    opened(model, "second", "it")
    close_all()
    close_all()
    assert model.calls == ["open first", "close"]


def test_what_a_run_makes_does_not_stay_on_the_users_object() -> None:
    model = Model([])
    mine = working(model)
    assert working(model) is mine
    opened(mine, "here", "it")
    assert (model.loaded, mine.loaded) == ("", "here")
    close_all()
    assert working(model) is not mine


def test_equal_functions_are_opened_each() -> None:
    first, second = Model([]), Model([])
    opened(first, "1", "it")
    opened(second, "2", "it")
    assert (first.calls, second.calls) == (["open 1"], ["open 2"])


def test_an_open_that_fails_names_its_step_and_is_tried_again() -> None:
    class Late(Model):
        def open(self, ctx: Any) -> None:
            super().open(ctx)
            if len(self.calls) == 1:
                raise ConnectionError("not yet")

    late = Late([])
    with pytest.raises(UserCodeError, match=r"step 'it' raised ConnectionError: not yet"):
        opened(late, "1", "it")
    opened(late, "2", "it")
    close_all()
    assert late.calls == ["open 1", "open 2", "close"]


def test_one_that_cannot_be_closed_does_not_keep_the_others_open(
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Stuck(Model):
        def close(self) -> None:
            sys.exit(3)

    model = Model([])
    opened(model, "1", "it")
    opened(Stuck([]), "2", "it")
    close_all()
    assert model.calls == ["open 1", "close"]
    assert "Stuck.close failed" in capfd.readouterr().err


PROGRAM = """
import os, signal, sys, time
from headrace._runtime import lifecycle
class Model:
    def open(self, ctx): print("open", flush=True)
    def close(self): print("close", flush=True)
lifecycle.opened(Model(), None, "it")
if sys.argv[1] == "hangup":
    # Under nohup it would be ignored, which a Spark worker sets back, too.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    lifecycle.close_on_hangup()
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(60)
"""


@pytest.mark.parametrize(("how", "code"), [("exit", 0), ("hangup", -1)])
def test_the_end_of_a_process_closes_what_it_opened(how: str, code: int) -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (found.stdout.split(), found.returncode) == (["open", "close"], code)
