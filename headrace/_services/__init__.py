"""Real local servers for development and tests: Kafka, PostgreSQL, a schema registry, MariaDB.

    with tempfile.TemporaryDirectory() as root:
        kafka = Kafka(Path(root, "kafka"))
        kafka.start()
        ...  # kafka.address
        kafka.kill()

A server listens on loopback only, on ports that it keeps when it is started again, and has one directory. It dies with
the process that started it unless it is `lasting`. Nothing here knows of jobs; `headrace dev` and the tests use it.
"""

from headrace._services.kafka import Kafka
from headrace._services.mariadb import MariaDb
from headrace._services.postgres import Postgres
from headrace._services.registry import Registry
from headrace._services.server import Server

__all__ = ["KINDS", "Kafka", "MariaDb", "Postgres", "Registry", "Server"]

#: What `headrace dev up` can start, by name.
KINDS: dict[str, type[Server]] = {kind.name: kind for kind in (Kafka, Postgres, Registry, MariaDb)}
