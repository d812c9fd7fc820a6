"""Real servers for tests, started once a run by the code behind `headrace dev`; they die with the run.

`HEADRACE_TEST_KAFKA`, `_POSTGRES`, `_REGISTRY` and `_MARIADB` name servers that run already. Those are nobody's to
kill: a test that asks for it is skipped and says so.
"""

import gc
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from headrace._services import Kafka, MariaDb, Postgres, Registry, Server
from headrace._services.mariadb import installed

_INSTALL = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
_QUIETLY = {"DEBIAN_FRONTEND": "noninteractive"}


@dataclass
class Found:
    """A server that somebody else started."""

    address: str
    variable: str

    running = True

    def start(self) -> None:
        """It runs."""

    def kill(self) -> NoReturn:
        pytest.skip(f"{self.variable} names a server of somebody else, which no test may kill")

    stop = kill


class Handed:
    """A server as tests use it: `kill`, `stop`, `start`, `running`, `address` and the name that fits its kind."""

    def __init__(self, server: Server | Found) -> None:
        self.server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)

    @property
    def bootstrap(self) -> str:
        return self.server.address

    dsn = url = bootstrap


@pytest.fixture(scope="session")
def servers_root() -> Iterator[Path]:
    """Everybody may enter it: PostgreSQL does not run as root."""
    with tempfile.TemporaryDirectory(
        prefix="headrace-servers-", ignore_cleanup_errors=True
    ) as root:
        Path(root).chmod(0o755)
        yield Path(root)


@pytest.fixture(scope="session")
def kafka(servers_root: Path) -> Iterator[Handed]:
    yield from _handed(Kafka(servers_root / "kafka"))


@pytest.fixture(scope="session")
def secure_kafka(servers_root: Path) -> Iterator[Kafka]:
    """A broker of its own with `secure_address` and `secure_options(mechanism)`."""
    server = Kafka(servers_root / "secure", secure=True)
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def postgres(servers_root: Path) -> Iterator[Handed]:
    yield from _handed(Postgres(servers_root / "postgres"))


@pytest.fixture(scope="session")
def registry(servers_root: Path) -> Iterator[Handed]:
    yield from _handed(Registry(servers_root / "registry"))


@pytest.fixture(scope="session")
def mariadb(servers_root: Path) -> Iterator[Handed]:
    """From Debian's package, which is installed if it is missing and we may."""
    if not installed() and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run([*_INSTALL, "mariadb-server"], env={**os.environ, **_QUIETLY}, check=False)
    if not installed() and "HEADRACE_TEST_MARIADB" not in os.environ:
        pytest.skip("there is no mariadbd on this machine and we may not install one")
    yield from _handed(MariaDb(servers_root / "mariadb"))


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """The name of a topic that nobody else uses; the test makes the topic."""
    return _unique(request, "-")


@pytest.fixture
def table(request: pytest.FixtureRequest) -> str:
    """The name of a table that nobody else uses; the test makes the table."""
    return _unique(request, "_")


def _handed(server: Server) -> Iterator[Handed]:
    variable = f"HEADRACE_TEST_{server.name.upper()}"
    if variable in os.environ:
        yield Handed(Found(os.environ[variable], variable))
        return
    server.start()
    try:
        yield Handed(server)
    finally:
        gc.collect()  # clients that a failed publication left behind would complain to the terminal
        server.remove()


def _unique(request: pytest.FixtureRequest, joint: str) -> str:
    words = "".join(letter if letter.isalnum() else joint for letter in request.node.name.lower())
    return f"{words[:40].strip(joint)}{joint}{uuid.uuid4().hex[:8]}"
