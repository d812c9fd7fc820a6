"""What every local server can do: start, be killed, stop, and be found again by another process."""

import shutil
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from headrace._services.ports import kept_ports
from headrace._services.process import Known, Running, running_as
from headrace.errors import SetupError

__all__ = ["Server"]

_LINES = 15


class Server(ABC):
    """A server in a directory of its own. The ports and the process are remembered there.

    `lasting`: it goes on when the process that started it ends.
    """

    name: ClassVar[str]
    #: What the product is called in messages.
    title: ClassVar[str]
    #: The names of the ports that it listens on; clients talk to the first one.
    ports: ClassVar[tuple[str, ...]] = ("client",)
    #: How it is asked to end.
    farewell: ClassVar[signal.Signals] = signal.SIGTERM
    #: After so many seconds a start has failed.
    patience: ClassVar[float] = 90.0

    def __init__(self, directory: Path, *, lasting: bool = False) -> None:
        self.directory = directory.absolute()
        self.lasting = lasting
        self._running: Running | None = None

    @property
    @abstractmethod
    def address(self) -> str:
        """What a client is given to reach it."""

    @abstractmethod
    def prepare(self) -> None:
        """Make whatever the first start needs; called before each one."""

    @abstractmethod
    def command(self) -> list[str | Path]:
        """What is run."""

    @abstractmethod
    def is_ready(self) -> bool:
        """It serves clients."""

    @property
    def user(self) -> str | None:
        """Whom it runs as, if that is somebody else."""
        return None

    @property
    def room(self) -> Path:
        """Where its process works; the user that it runs as must be able to enter."""
        return self.directory

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables for its process."""
        return {}

    @property
    def variables(self) -> dict[str, str]:
        """What `headrace dev up` exports."""
        return {f"HEADRACE_{self.name.upper()}": self.address}

    @property
    def log(self) -> Path:
        """What it says."""
        return self.directory / "log.txt"

    @property
    def exists(self) -> bool:
        """It was started in its directory at any time, so what lies there is its own."""
        return self._ports.is_file()

    @property
    def running(self) -> bool:
        """Its process is alive, whoever started it."""
        return self._process() is not None

    @property
    def pid(self) -> int | None:
        """The number of its process, while it is alive."""
        process = self._process()
        return None if process is None else process.known.pid

    def start(self) -> None:
        """Start it and wait until it serves; nothing happens if it runs."""
        if self.running:
            return
        self._forget()  # an earlier one that ended by itself: its watcher must not outlive its number
        self.directory.mkdir(parents=True, exist_ok=True)
        self._check_own()
        kept_ports(self._ports, self.ports)  # from here on the directory is its own
        self.prepare()
        self._running = running_as(
            self.command(),
            log=self.log,
            directory=self.room,
            user=self.user,
            environment=self.environment,
            lasting=self.lasting,
        )
        self._running.known.write(self._record)
        self._await_ready()

    def kill(self) -> None:
        """End it like a power cut would; its directory stays and it can be started again."""
        process = self._process()
        if process is not None:
            process.kill()
        self._forget()

    def stop(self) -> None:
        """End it in order."""
        process = self._process()
        if process is not None:
            process.stop(self.farewell, patience=30)
        self._forget()

    def remove(self) -> None:
        """End it and delete everything that it held, also what lies outside of its directory."""
        self.kill()
        if self.exists:
            shutil.rmtree(self.room, ignore_errors=True)
            shutil.rmtree(self.directory, ignore_errors=True)

    def port(self, name: str) -> int:
        """The port with this name; the same one at every start."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return kept_ports(self._ports, self.ports)[name]

    @property
    def _ports(self) -> Path:
        return self.directory / "ports.json"

    @property
    def _record(self) -> Path:
        return self.directory / "process.json"

    def _process(self) -> Running | None:
        if self._running is None:
            known = Known.read(self._record)
            return Running(known) if known is not None and known.alive else None
        return self._running if self._running.known.alive else None

    def _forget(self) -> None:
        if self._running is not None:
            self._running.kill()  # it may have ended by itself; its watcher is still there
        self._running = None
        self._record.unlink(missing_ok=True)

    def _check_own(self) -> None:
        """What is in its directory is deleted with it one day, so nothing of others may be there."""
        if not self.exists and any(self.directory.iterdir()):
            raise SetupError(
                f"{self.directory} holds files that are not {self.title}'s. Let it live elsewhere: --directory"
            )

    def _await_ready(self) -> None:
        until = time.monotonic() + self.patience
        while not self.is_ready():
            ended = not self.running
            if ended or time.monotonic() > until:
                self.kill()
                how = "ended at once" if ended else f"did not answer within {self.patience:.0f} s"
                raise SetupError(
                    f"{self.title} {how}. The end of {self.log}:\n{self._last_words()}"
                )
            time.sleep(0.05)

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(f"    {line}" for line in lines[-_LINES:]) or "    (nothing)"
