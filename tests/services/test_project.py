"""The servers of a project when one of them does not start: the others are there, and known."""

import gc
import json
import time
from pathlib import Path
from typing import ClassVar

import pytest

from headrace._services import project
from headrace._services.server import Server
from headrace.errors import SetupError


class Slow(Server):
    name: ClassVar[str] = "slow"
    title: ClassVar[str] = "Slow"
    address = "nowhere"

    def prepare(self) -> None:
        time.sleep(0.3)

    def command(self) -> list[str | Path]:
        return ["sleep", "600"]

    def is_ready(self) -> bool:
        return True


class Broken(Slow):
    name: ClassVar[str] = "broken"

    def prepare(self) -> None:
        raise SetupError("there is no such program")


# A server that lasts is not waited for by whoever started it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_server_that_fails_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "KINDS", {kind.name: kind for kind in (Broken, Slow)})
    servers = project.Project(tmp_path)
    try:
        with pytest.raises(SetupError, match="no such program"):
            servers.up(["broken", "slow"])
        assert list(json.loads((tmp_path / "servers.json").read_text())) == ["slow"]
        assert [server.name for server in servers.running()] == ["slow"]
    finally:
        ended = servers.down()
        gc.collect()  # here the warning is expected
    assert ended == ["slow"]
