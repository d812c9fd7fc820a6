"""`headrace dev` before any server is started: nothing of the user's is touched, and mistakes are sentences."""

import os
import signal
from pathlib import Path

import pytest

import headrace
from headrace._cli import main as command
from headrace._services import Kafka, Server
from headrace._services.project import Project
from headrace.errors import SetupError


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["headrace", *words])
    with pytest.raises(SystemExit) as ended:
        command.main()
    return int(ended.value.code or 0)


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"headrace {headrace.__version__}\n"


def test_folders_that_are_named_as_a_server_are_not_its(tmp_path: Path) -> None:
    source = tmp_path / "kafka" / "consumer.py"
    source.parent.mkdir()
    source.write_text("mine")
    (tmp_path / ".gitignore").write_text("*.log\n")
    project = Project(tmp_path)
    with pytest.raises(SetupError, match="not Kafka's"):
        project.up(["kafka"])
    assert project.known() == []
    assert project.down(remove=True) == []
    assert project.down(["kafka"], remove=True) == []
    assert source.read_text() == "mine"
    assert (tmp_path / ".gitignore").read_text() == "*.log\n"


def test_a_first_start_that_failed_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Kafka) -> None:
        (self.directory / "half").touch()
        raise SetupError("no network")

    monkeypatch.setattr(Kafka, "prepare", fails)
    for _ in range(2):
        with pytest.raises(SetupError, match="no network"):
            Kafka(tmp_path / "kafka").start()
    Kafka(tmp_path / "kafka").remove()
    assert not (tmp_path / "kafka").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-d", "file"), "file cannot be made: File exists. Name another place: --directory"),
        (("-d", "file/inner"), "inner cannot be made: Not a directory"),
        (("--run", "'"), "No closing quotation"),
        (("--run", ""), "--run needs a command"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert run(monkeypatch, "dev", "up", "postgres", *words) == 1
    told = capsys.readouterr().err
    assert told.startswith("headrace: ")
    assert said in told
    assert told.count("\n") == 1


def test_what_the_system_refuses_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Project, "up", lambda _self, names: dict.fromkeys(names, False))
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "dev", "up", "postgres", "--run", "no-such-program") == 1
    assert capsys.readouterr().err == "headrace: no-such-program: No such file or directory\n"


class Sleeper(Server):
    """A process that does nothing, and serves at once."""

    name = "sleeper"
    title = "Sleeper"
    address = "nowhere"

    def prepare(self) -> None:
        pass

    def command(self) -> list[str | Path]:
        return ["sleep", "600"]

    def is_ready(self) -> bool:
        return True


def test_a_server_that_ended_by_itself_leaves_no_watcher_behind(tmp_path: Path) -> None:
    server = Sleeper(tmp_path / "sleeper")
    server.start()
    assert server._running is not None
    watcher, first = server._running.watcher, server.pid
    assert watcher is not None
    assert first is not None
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    server.start()
    assert watcher.poll() is not None
    assert server.pid not in (None, first)
    server.kill()
    assert not server.running
