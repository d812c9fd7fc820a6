"""A Kafka broker in KRaft mode from its own jars, and the controller that it needs, in a process of its own.

One process can be both, but a broker that is killed then comes back believing that it still leads its partitions, and
in Kafka 4.3 a transaction that it had promised to commit a moment before may lose its commit marks for ever.

Topics are not made by being asked for, and no record is too old to be kept: both would make a test or a first try
succeed or fail by accident. `secure=True` adds a listener with TLS and SASL (PLAIN and SCRAM-SHA-256).
"""

import base64
import contextlib
import socket
import struct
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from headrace._services import tls
from headrace._services.jars import Artifact, Product, fetched, java
from headrace._services.ports import HOST
from headrace._services.server import Server
from headrace.errors import SetupError

__all__ = ["Kafka"]

_PRODUCT = Product(
    "kafka",
    "Kafka",
    "4.3.1",
    48,
    (
        Artifact("org.apache.kafka", "kafka_2.13", "4.3.1"),
        Artifact("org.slf4j", "slf4j-simple", "1.7.36"),  # without it the broker says nothing
    ),
)
_SETTINGS = {
    "process.roles": "broker",
    "node.id": "1",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    # Transactions that no client ends are aborted within a second of their time-out, not within ten.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.retention.hours": "-1",
    "broker.heartbeat.interval.ms": "1000",
}
_CONTROLLER = 100
_PROPERTIES = "server.properties"
_USER, _PASSWORD = "ada", "lovelace-1843"  # of a server on loopback that holds nothing


class Controller(Server):
    """What Kafka keeps its list of brokers, topics and users in. It outlives a broker that is killed."""

    name: ClassVar[str] = "controller"
    title: ClassVar[str] = "Kafka's controller"
    ports: ClassVar[tuple[str, ...]] = ("controller",)

    @property
    def address(self) -> str:
        """Where brokers find it."""
        return f"{HOST}:{self.port('controller')}"

    @property
    def quorum(self) -> dict[str, str]:
        """What a broker and the controller itself must know."""
        return {
            "controller.quorum.voters": f"{_CONTROLLER}@{self.address}",
            "controller.listener.names": "CONTROLLER",
        }

    def prepare(self) -> None:
        """Write the settings and make its storage."""
        settings = self.quorum | {
            "process.roles": "controller",
            "node.id": str(_CONTROLLER),
            "listeners": f"CONTROLLER://{self.address}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.directory / "content"),
            # A broker that was killed is not let in again before its last session is over.
            "broker.session.timeout.ms": "4000",
        }
        _prepare(self.directory, settings, _cluster(self.directory))

    def command(self) -> list[str | Path]:
        """The controller."""
        return [
            java(),
            "-Xmx192m",
            "-XX:+UseSerialGC",
            *_classes(),
            "kafka.Kafka",
            self._properties,
        ]

    def is_ready(self) -> bool:
        """It takes connections."""
        with contextlib.suppress(OSError):
            socket.create_connection((HOST, self.port("controller")), timeout=2).close()
            return True
        return False

    @property
    def _properties(self) -> Path:
        return self.directory / _PROPERTIES


class Kafka(Server):
    """A broker on loopback. `kill` ends the broker alone, `stop` its controller, too."""

    name: ClassVar[str] = "kafka"
    title: ClassVar[str] = "Kafka"
    ports: ClassVar[tuple[str, ...]] = ("client", "secure")

    def __init__(self, directory: Path, *, lasting: bool = False, secure: bool = False) -> None:
        super().__init__(directory, lasting=lasting)
        self.secure = secure
        self._controller = Controller(self.directory / "controller", lasting=lasting)

    @property
    def address(self) -> str:
        """The bootstrap server."""
        return f"{HOST}:{self.port('client')}"

    @property
    def secure_address(self) -> str:
        """The bootstrap server of the listener with TLS and SASL."""
        return f"{HOST}:{self.port('secure')}"

    def secure_options(self, mechanism: str = "PLAIN") -> dict[str, str]:
        """What a client sets to be let in there."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.directory / tls.CERTIFICATE),
            "sasl.mechanism": mechanism,
            "sasl.username": _USER,
            "sasl.password": _PASSWORD,
        }

    def prepare(self) -> None:
        """Write the settings; the first time also what Kafka calls formatting its storage. Start the controller."""
        if self.secure:
            tls.make_certificate(self.directory)
        self._controller.start()
        _prepare(self.directory, self._settings(), _cluster(self._controller.directory))

    def command(self) -> list[str | Path]:
        """The broker."""
        flags = ["-Xms256m", "-Xmx512m", "-XX:+UseG1GC"]
        return [java(), *flags, *_classes(), "kafka.Kafka", self._properties]

    def start(self) -> None:
        """Start both; a broker that does not come leaves no controller behind that nobody sees."""
        try:
            super().start()
        except SetupError:
            self._controller.kill()
            raise

    def stop(self) -> None:
        """End the broker in order, then its controller."""
        super().stop()
        self._controller.stop()

    def remove(self) -> None:
        """End both and delete everything that they held."""
        self._controller.kill()
        super().remove()

    def is_ready(self) -> bool:
        """The broker names itself as one that takes records."""
        with contextlib.suppress(OSError, struct.error):
            return _brokers(self.port("client")) > 0
        return False

    @property
    def _properties(self) -> Path:
        return self.directory / _PROPERTIES

    def _settings(self) -> dict[str, str]:
        own = f"PLAINTEXT://{self.address}"
        protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
        settings = _SETTINGS | self._controller.quorum
        settings["log.dirs"] = str(self.directory / "content")
        if self.secure:
            own += f",SECURE://{self.secure_address}"
            protocols += ",SECURE:SASL_SSL"
            settings |= self._secure_settings()
        settings["listeners"] = settings["advertised.listeners"] = own
        settings["listener.security.protocol.map"] = protocols
        return settings

    def _secure_settings(self) -> dict[str, str]:
        modules = "org.apache.kafka.common.security"
        login = f'username="{_USER}" password="{_PASSWORD}"'
        return {
            "listener.name.secure.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.secure.plain.sasl.jaas.config": f"{modules}.plain.PlainLoginModule required {login} "
            f'user_{_USER}="{_PASSWORD}";',
            "listener.name.secure.scram-sha-256.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;",
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": str(self.directory / tls.KEY_STORE),
        }


def _prepare(directory: Path, settings: Mapping[str, str], cluster: str) -> None:
    properties = directory / _PROPERTIES
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    if not (directory / "content" / "meta.properties").exists():
        _format(properties, cluster)


def _cluster(directory: Path) -> str:
    """The name of the cluster, which broker and controller share; drawn at the first start."""
    path = directory / "cluster.txt"
    if not path.exists():
        path.write_text(base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))
    return path.read_text()


def _classes() -> list[str]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    dated = "-Dorg.slf4j.simpleLogger.showDateTime=true"
    return [quiet, dated, "-cp", f"{fetched(_PRODUCT)}/*"]


def _format(properties: Path, cluster: str) -> None:
    command = [java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *_classes()]
    command += ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", properties]
    command += ["--add-scram", f"SCRAM-SHA-256=[name={_USER},password={_PASSWORD}]"]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SetupError(f"Kafka could not make its storage:\n{done.stdout}{done.stderr}")


def _brokers(port: int) -> int:
    """How many brokers the cluster has that are let in, by a metadata request (key 3, version 1) about no topic."""
    request = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
    with socket.create_connection((HOST, port), timeout=2) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        size, _ = struct.unpack(">ii", _exactly(connection, 8))
        return int(struct.unpack_from(">i", _exactly(connection, size - 4))[0])


def _exactly(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        piece = connection.recv(size - len(content))
        if not piece:
            raise ConnectionError("the broker hung up")
        content += piece
    return content
