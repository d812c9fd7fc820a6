"""A schema registry that speaks Confluent's interface: Apicurio, with its schemas in a file of an embedded database."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from headrace._services.jars import Artifact, Product, fetched, java
from headrace._services.ports import HOST
from headrace._services.server import Server

__all__ = ["Registry"]

_VERSION = "3.0.9"  # 3.3 needs Java 21
_PRODUCT = Product(
    "registry",
    "Apicurio Registry",
    _VERSION,
    109,
    (Artifact("io.apicurio", "apicurio-registry-app", _VERSION, archive="all"),),
)


class Registry(Server):
    """A registry on loopback."""

    name: ClassVar[str] = "registry"
    title: ClassVar[str] = "Apicurio Registry"
    ports: ClassVar[tuple[str, ...]] = ("client", "management")
    patience: ClassVar[float] = 180.0

    @property
    def address(self) -> str:
        """The URL of Confluent's interface."""
        return f"http://{HOST}:{self.port('client')}/apis/ccompat/v7"

    @property
    def environment(self) -> Mapping[str, str]:
        """All of its settings."""
        return {
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(self.port("client")),
            "QUARKUS_MANAGEMENT_HOST": HOST,
            "QUARKUS_MANAGEMENT_PORT": str(self.port("management")),
            "APICURIO_STORAGE_KIND": "sql",
            "APICURIO_STORAGE_SQL_KIND": "h2",
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self.directory}/schemas",
        }

    def prepare(self) -> None:
        """Fetch it."""
        self._program = fetched(_PRODUCT)

    def command(self) -> list[str | Path]:
        """The registry."""
        jar = self._program / f"apicurio-registry-app-{_VERSION}-runner.jar"
        return [java(), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-jar", jar]

    def is_ready(self) -> bool:
        """It lists its subjects."""
        try:
            with urllib.request.urlopen(f"{self.address}/subjects", timeout=5) as reply:  # noqa: S310
                return bool(reply.status == 200)
        except (OSError, urllib.error.URLError):
            return False
