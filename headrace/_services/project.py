"""The servers of a project: started together, found again, and ended without touching anybody else's.

.headrace/dev/servers.json    how to reach those that run, for programs
.headrace/dev/kafka/          one directory a server: its files, ports, process and log
"""

import fcntl
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from headrace._services import KINDS
from headrace._services.server import Server
from headrace.errors import BuildError, SetupError

__all__ = ["DIRECTORY", "Project"]

DIRECTORY = Path(".headrace", "dev")


class Project:
    """The servers below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def up(self, names: Sequence[str]) -> dict[str, bool]:
        """Start these; says of each whether it had to be started. They outlive this process."""
        servers = [self._server(name) for name in dict.fromkeys(names)]
        self._make_root()
        with self._alone():
            ran = {server.name: server.running for server in servers}
            try:
                with ThreadPoolExecutor(len(servers) or 1) as threads:
                    starting = [threads.submit(server.start) for server in servers]
                for start in starting:
                    start.result()
            finally:  # one may have failed, and the others are there
                self._write()
        return {name: not before for name, before in ran.items()}

    def down(self, names: Sequence[str] = (), *, remove: bool = False) -> list[str]:
        """End these, or all; the names of those that ran. `remove` deletes what they held, too."""
        servers = [self._server(name) for name in dict.fromkeys(names)] or self.known()
        if not self.root.is_dir():
            return []
        with self._alone():
            ended = [server.name for server in servers if server.running]
            for server in servers:
                server.stop()
                if remove:
                    server.remove()
            self._write()
        return ended

    def known(self) -> list[Server]:
        """Those that were started here at any time."""
        return [server for server in map(self._server, KINDS) if server.exists]

    def running(self) -> list[Server]:
        """Those that run now."""
        return [server for server in self.known() if server.running]

    def _make_root(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            if not any(self.root.iterdir()):  # otherwise it may be somebody's own .gitignore
                (self.root / ".gitignore").write_text("*\n")
        except OSError as error:
            raise SetupError(
                f"{self.root} cannot be made: {error.strerror}. Name another place: --directory"
            ) from error

    def _server(self, name: str) -> Server:
        if name not in KINDS:
            raise BuildError(f"There is no server {name!r}. Known: {', '.join(KINDS)}.")
        return KINDS[name](self.root / name, lasting=True)

    def _write(self) -> None:
        found = {
            server.name: {
                "address": server.address,
                "variables": server.variables,
                "pid": server.pid,
                "log": str(server.log),
            }
            for server in self.running()
        }
        draft = self.root / "servers.json.draft"
        draft.write_text(json.dumps(found, indent=2) + "\n")
        draft.replace(self.root / "servers.json")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two commands at once would each start a server in the same directory."""
        with (self.root / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
