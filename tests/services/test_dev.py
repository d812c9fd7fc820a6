"""`headrace dev` as users run it: a command that ends, servers that stay, and a command that ends exactly those."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from headrace._services.process import Known, children
from headrace._services.project import Project
from tests.crash.killing import wait_until
from tests.pages import ROOT
from tests.services.test_examples import example

pytestmark = pytest.mark.services

#: In the environment of everything that a command starts.
MARK = "HEADRACE_TEST_PROJECT"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A directory that only we may enter; PostgreSQL, which does not run as root, must find a way."""
    servers = Project(tmp_path / ".headrace" / "dev")
    yield tmp_path
    rooms = [server.room for server in servers.known()]
    servers.down(remove=True)
    assert not any(room.exists() for room in rooms)
    assert servers.known() == []


def _headrace(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = "from headrace._cli.main import main; main()"
    found = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=project,
        env={**os.environ, **found, MARK: str(project)},
        capture_output=True,
        text=True,
        check=False,
    )


def _known(project: Path, name: str) -> Known:
    known = Known.read(project / ".headrace" / "dev" / name / "process.json")
    assert known is not None
    return known


def _listening(pid: int) -> set[str]:
    """The local addresses, in the kernel's spelling, that a process and its children listen on."""
    sockets = set()
    for process in [pid, *children(pid)]:
        for handle in Path(f"/proc/{process}/fd").iterdir():
            target = str(handle.readlink())
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.add(fields[1].partition(":")[0])
    return found


def test_up_status_up_again_and_down(project: Path) -> None:
    up = _headrace(project, "dev", "up", "kafka", "postgres")
    assert up.returncode == 0, up.stderr
    exported = dict(line.removeprefix("export ").split("=", 1) for line in up.stdout.splitlines())
    assert set(exported) == {"HEADRACE_KAFKA", "HEADRACE_POSTGRES"}
    admin = AdminClient({"bootstrap.servers": exported["HEADRACE_KAFKA"]})
    assert admin.list_topics(timeout=20).brokers
    with psycopg.connect(exported["HEADRACE_POSTGRES"]) as connection:
        assert connection.execute("select 1").fetchone() == (1,)

    written = json.loads((project / ".headrace" / "dev" / "servers.json").read_text())
    assert written["kafka"]["address"] == exported["HEADRACE_KAFKA"]
    kafka, postgres = _known(project, "kafka"), _known(project, "postgres")
    assert _listening(kafka.pid)
    assert _listening(kafka.pid) | _listening(postgres.pid) <= LOOPBACK

    again = _headrace(project, "dev", "up", "kafka", "postgres")
    assert again.stdout == up.stdout
    assert again.stderr.count("already running") == 2
    assert (_known(project, "kafka"), _known(project, "postgres")) == (kafka, postgres)

    status = _headrace(project, "dev", "status").stdout
    assert f"running (pid {kafka.pid})" in status
    assert exported["HEADRACE_POSTGRES"] in status

    one = _headrace(project, "dev", "down", "postgres")
    assert one.stderr == "ended: postgres\n"
    assert not postgres.alive
    assert kafka.alive
    rest = _headrace(project, "dev", "down")
    assert rest.stderr == "ended: kafka\n"
    assert not kafka.alive
    assert json.loads((project / ".headrace" / "dev" / "servers.json").read_text()) == {}


@pytest.mark.spark
def test_an_example_runs_by_its_one_command_and_leaves_nothing_behind(project: Path) -> None:
    script = ROOT / "examples" / "revenue_per_minute.py"
    command = f"python {script} --orders 2000"
    done = _headrace(project, "dev", "up", "kafka", "postgres", "--run", command)
    assert done.returncode == 0, done.stderr
    orders = list(islice(example("revenue_per_minute").all_orders(), 2000))
    windows = {(order.at.replace(second=0, microsecond=0), order.country) for order in orders}
    revenue = sum(order.amount for order in orders)
    said = f"{len(windows)} minutes and countries, 2000 orders, revenue {revenue:,.2f}\n"
    assert done.stdout.startswith(said)

    assert any("kafka" in line for line in _started(project))
    assert _headrace(project, "dev", "down").stderr == "ended: kafka, postgres\n"
    assert wait_until(lambda: _started(project) == [], 20), _started(project)


def _started(project: Path) -> list[str]:
    """The command lines of what a command started here and still runs, or what that started."""
    mark, found = f"{MARK}={project}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def test_down_leaves_a_process_alone_that_got_the_number_of_a_dead_server(project: Path) -> None:
    assert _headrace(project, "dev", "up", "postgres").returncode == 0
    server = _known(project, "postgres")
    _headrace(project, "dev", "down")
    with subprocess.Popen(["sleep", "600"]) as other:
        record = project / ".headrace" / "dev" / "postgres" / "process.json"
        Known(other.pid, server.start, server.boot).write(record)
        assert _headrace(project, "dev", "down").stderr == "nothing was running\n"
        assert other.poll() is None
        other.kill()


def test_a_server_that_nobody_knows_is_refused_with_the_choices(project: Path) -> None:
    refused = _headrace(project, "dev", "up", "oracle")
    assert refused.returncode == 1
    assert (
        "There is no server 'oracle'. Known: kafka, postgres, registry, mariadb." in refused.stderr
    )
