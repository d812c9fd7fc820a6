"""A MariaDB server from the machine's packages."""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import ClassVar

from headrace._services.accounts import lesser_user, made_once, room_of
from headrace._services.ports import HOST
from headrace._services.server import Server
from headrace.errors import SetupError

__all__ = ["MariaDb", "installed"]


class MariaDb(Server):
    """A server on loopback, user `root` without a password, database `test`."""

    name: ClassVar[str] = "mariadb"
    title: ClassVar[str] = "MariaDB"

    @property
    def address(self) -> str:
        """The URL of the database."""
        return f"mysql://root@{HOST}:{self.port('client')}/test"

    @property
    def user(self) -> str | None:
        """MariaDB refuses to run as root."""
        return lesser_user(("mysql", "nobody"))

    @property
    def room(self) -> Path:
        """Where its files lie."""
        return room_of(self.directory, self.user)

    def prepare(self) -> None:
        """Make the system tables, the first time."""
        self._program = _program("mariadbd")
        made_once(self.directory, self.room, self._initialise)

    def command(self) -> list[str | Path]:
        """The server."""
        network = [
            f"--bind-address={HOST}",
            f"--port={self.port('client')}",
            "--socket=server.sock",
        ]
        binlog = ["--log-bin", "--binlog-format=ROW", "--binlog-row-metadata=FULL", "--server-id=1"]
        return [self._program, "--no-defaults", f"--datadir={self.room}", *network, *binlog]

    def is_ready(self) -> bool:
        """It greets clients, which it does some time after it listens; a signal between the two is lost."""
        try:
            with socket.create_connection((HOST, self.port("client")), timeout=2) as connection:
                return len(connection.recv(5)) == 5
        except OSError:
            return False

    def _initialise(self) -> None:
        room = self.room
        command = [
            _program("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={room}",
            "--auth-root-authentication-method=normal",
        ]
        done = subprocess.run(
            command, cwd=room, user=self.user, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SetupError(f"mariadb-install-db failed:\n{done.stdout}{done.stderr}")


def installed() -> bool:
    """The machine has what a server needs."""
    return _found("mariadbd") is not None and _found("mariadb-install-db") is not None


def _program(name: str) -> str:
    found = _found(name)
    if found is None:
        raise SetupError(
            f"There is no {name} on this machine. Install MariaDB (Debian: apt-get install mariadb-server)."
        )
    return found


def _found(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
