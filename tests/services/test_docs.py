"""Python in the documentation that needs servers runs, page by page.

The pages find servers as programs behind `headrace dev up` do. Their topics and subjects begin with `guide-`, their
tables with `guide_`; what an earlier run left of them is removed first.
"""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from psycopg import sql

from tests.pages import PAGES, blocks, needed, run, titled
from tests.services.kafka_topics import Topics

pytestmark = pytest.mark.services


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, served=True)], ids=titled)
def test_examples_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for name in sorted(needed(page)):
        server: Any = request.getfixturevalue(name)
        monkeypatch.setenv(f"HEADRACE_{name.upper()}", server.address)
        CLEARED[name](server.address)
    assert run(page, tmp_path, monkeypatch, served=True).keys() > {"__name__"}


def _without_topics(bootstrap: str) -> None:
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics
    for name in [name for name in found if name.startswith("guide-")]:
        Topics(bootstrap).remove(name)


def _without_tables(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "select tablename from pg_tables where tablename like 'guide\\_%'"
        )
        for (name,) in found.fetchall():
            connection.execute(sql.SQL("drop table {}").format(sql.Identifier(name)))


def _without_subjects(url: str) -> None:
    with SchemaRegistryClient({"url": url}) as client:
        for subject in [name for name in client.get_subjects() if name.startswith("guide-")]:
            client.delete_subject(subject)


CLEARED = {"kafka": _without_topics, "postgres": _without_tables, "registry": _without_subjects}
