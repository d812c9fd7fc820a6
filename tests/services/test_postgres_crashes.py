"""The PostgreSQL sink when connections, processes and servers die: every row once, whatever was cut off where."""

import contextlib
import itertools
import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import psycopg
import pyarrow as pa
import pytest

from headrace.connectors.databases.postgres import PostgresDialect
from headrace.connectors.databases.sink import PostgresSink
from headrace.endpoints import Publisher, Receipt, SinkContext
from headrace.errors import SinkError, SinkRefused

pytestmark = pytest.mark.services

SCHEMA = pa.schema({"id": pa.int64(), "epoch": pa.int64(), "change": pa.string()})
PLAIN = pa.schema({"id": pa.int64(), "epoch": pa.int64()})


def context(spool: Path, *, fence: int = 1, incarnation: str, schema: pa.Schema) -> SinkContext:
    return SinkContext("job", incarnation, "results", schema, spool, fence)


def stage(sink: PostgresSink, owner: SinkContext, epoch: int, rows: list[dict[str, Any]]) -> Any:
    receipts: list[Receipt] = []
    for task, part in (("a", rows[::2]), ("b", rows[1::2])):
        stager = sink.stager(owner, epoch, f"{task}-{secrets.token_hex(4)}")
        stager.write(pa.RecordBatch.from_pylist(part, owner.schema))
        receipts += stager.close()
    return receipts


class Saboteur:
    """Counts what is done on connections made from now on and acts before step number `at`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at, self.steps = -1, 0
        self.act: Callable[[Any], None] = lambda _connection: None
        real = PostgresDialect.connect
        monkeypatch.setattr(
            PostgresDialect, "connect", lambda *arguments: Watched(real(*arguments), self)
        )

    def arm(self, at: int, act: Callable[[Any], None]) -> None:
        self.at, self.act, self.steps = at, act, 0

    def step(self, connection: Any) -> None:
        if self.steps == self.at:
            self.at = -1
            self.act(connection)
        self.steps += 1


class Watched:
    """A connection, or one of its cursors, whose calls are steps."""

    def __init__(self, real: Any, saboteur: Saboteur, connection: Any = None) -> None:
        self._real, self._saboteur, self._connection = real, saboteur, connection or real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._real.close()

    def cursor(self) -> "Watched":
        return Watched(self._real.cursor(), self._saboteur, self._connection)

    def execute(self, *arguments: Any) -> Any:
        self._saboteur.step(self._connection)
        return self._real.execute(*arguments)

    def copy(self, *arguments: Any) -> Any:
        self._saboteur.step(self._connection)
        return self._real.copy(*arguments)

    def commit(self) -> None:
        self._saboteur.step(self._connection)
        self._real.commit()
        self._saboteur.step(self._connection)


@pytest.fixture
def server(postgres: Any, table: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection
        connection.execute(f'drop table if exists "{table}"')


@pytest.fixture
def saboteur(monkeypatch: pytest.MonkeyPatch) -> Saboteur:
    return Saboteur(monkeypatch)


def terminate(server: psycopg.Connection) -> Callable[[Any], None]:
    """The backend of a connection goes, as if the server had been killed under it."""

    def act(connection: Any) -> None:
        server.execute("select pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))

    return act


def lose_reply(connection: Any) -> None:
    raise psycopg.OperationalError("the reply was lost")


def patiently(publisher: Publisher, epoch: int, receipts: Any) -> int:
    """Ask again as the committer does; how often it had to."""
    for attempt in itertools.count():
        try:
            publisher.publish(epoch, receipts)
            return attempt
        except SinkRefused:
            raise
        except SinkError:
            assert attempt < 5
    raise AssertionError


def epochs() -> list[list[dict[str, Any]]]:
    """Adds 0-9, then replaces 0-4, deletes 5-7, adds 10-12."""
    first = [{"id": n, "epoch": 0, "change": "+I"} for n in range(10)]
    second = [{"id": n, "epoch": 1, "change": "+U"} for n in range(5)]
    second += [{"id": n, "epoch": 0, "change": "-D"} for n in range(5, 8)]
    second += [{"id": n, "epoch": 1, "change": "+I"} for n in range(10, 13)]
    return [first, second]


EXPECTED = [(n, 1) for n in range(5)] + [(8, 0), (9, 0)] + [(n, 1) for n in range(10, 13)]


def rows_of(server: psycopg.Connection, table: str) -> list[tuple[int, int]]:
    return server.execute(f'select id, epoch from "{table}" order by id, epoch').fetchall()


def marker_of(server: psycopg.Connection, incarnation: str) -> list[tuple[int, int]]:
    return server.execute(
        "select epoch, fence from headrace_markers where incarnation = %s", (incarnation,)
    ).fetchall()


@pytest.mark.parametrize("act", ["terminate", "lose_reply"])
@pytest.mark.parametrize("new_process", [False, True])
def test_a_publish_that_is_cut_off_at_any_step_writes_its_rows_once(
    act: str,
    new_process: bool,
    postgres: Any,
    table: str,
    server: psycopg.Connection,
    saboteur: Saboteur,
    tmp_path: Path,
) -> None:
    sink = PostgresSink(postgres.dsn, table=table, mode="upsert", key="id", create=True)
    action = terminate(server) if act == "terminate" else lose_reply
    failures = 0
    for at in itertools.count():
        server.execute(f'drop table if exists "{table}"')
        incarnation = secrets.token_hex(8)
        owner = context(tmp_path / str(at), incarnation=incarnation, schema=SCHEMA)
        publisher = sink.publisher(owner)
        receipts = [stage(sink, owner, epoch, rows) for epoch, rows in enumerate(epochs())]
        publisher.publish(0, receipts[0])
        saboteur.arm(at, action)
        with contextlib.suppress(SinkError):
            publisher.publish(1, receipts[1])
        armed, saboteur.at = saboteur.at, -1
        if new_process:
            publisher.close()
            owner = context(owner.spool, fence=2, incarnation=incarnation, schema=SCHEMA)
            publisher = sink.publisher(owner)
            if publisher.published() != 1:
                publisher.publish(1, receipts[1])
        else:
            patiently(publisher, 1, receipts[1])
        publisher.close()
        assert rows_of(server, table) == EXPECTED, f"step {at}"
        assert marker_of(server, incarnation) == [(1, 2 if new_process else 1)]
        if armed == at:
            break
        failures += 1
    # lock; create, copy, delete; create, copy, insert; marker; before and after the commit
    assert failures == 10


def test_an_earlier_start_is_refused_once_a_later_one_began(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    sink, incarnation = PostgresSink(postgres.dsn, table=table, create=True), secrets.token_hex(8)
    owner = context(tmp_path, incarnation=incarnation, schema=PLAIN)
    zombie = sink.publisher(owner)
    zombie.publish(0, stage(sink, owner, 0, [{"id": 1, "epoch": 0}]))
    receipts = stage(sink, owner, 1, [{"id": 2, "epoch": 1}])
    later = sink.publisher(context(tmp_path, fence=2, incarnation=incarnation, schema=PLAIN))
    assert later.published() == later.highest_seen() == 0
    with pytest.raises(SinkRefused, match="another start of this job"):
        zombie.publish(1, receipts)
    with pytest.raises(SinkRefused, match=r"number 2\) has taken the table over"):
        sink.publisher(owner)
    later.publish(1, receipts)
    assert rows_of(server, table) == [(1, 0), (2, 1)]
    zombie.close()
    later.close()


def test_a_later_start_waits_for_what_an_earlier_one_has_in_flight(
    postgres: Any, table: str, server: psycopg.Connection, saboteur: Saboteur, tmp_path: Path
) -> None:
    sink, incarnation = PostgresSink(postgres.dsn, table=table, create=True), secrets.token_hex(8)
    owner = context(tmp_path, incarnation=incarnation, schema=PLAIN)
    earlier, receipts = sink.publisher(owner), stage(sink, owner, 0, [{"id": 1, "epoch": 0}])
    reached, go_on, told = threading.Event(), threading.Event(), []

    def hold(connection: Any) -> None:
        reached.set()
        go_on.wait(10)

    def take_over() -> None:
        later = sink.publisher(context(tmp_path, fence=2, incarnation=incarnation, schema=PLAIN))
        told.append(later.published())
        later.close()

    saboteur.arm(4, hold)
    threads = [threading.Thread(target=earlier.publish, args=(0, receipts))]
    threads[0].start()
    assert reached.wait(10)
    threads.append(threading.Thread(target=take_over))
    threads[1].start()
    threads[1].join(0.5)
    assert threads[1].is_alive()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert told == [0]
    assert rows_of(server, table) == [(1, 0)]
    earlier.close()


def test_two_publishers_of_one_epoch_write_it_once(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    sink, incarnation = PostgresSink(postgres.dsn, table=table, create=True), secrets.token_hex(8)
    owner = context(tmp_path, incarnation=incarnation, schema=PLAIN)
    publishers = [sink.publisher(owner) for _ in range(2)]
    wanted = [(n, epoch) for n in range(20) for epoch in range(5)]
    for epoch in range(5):
        receipts = stage(sink, owner, epoch, [{"id": n, "epoch": epoch} for n in range(20)])
        kept = [(tmp_path / r.path, (tmp_path / r.path).read_bytes()) for r in receipts]
        threads = [threading.Thread(target=p.publish, args=(epoch, receipts)) for p in publishers]
        with contextlib.ExitStack() as stack:
            stack.enter_context(pytest.MonkeyPatch.context()).setattr(
                "headrace.connectors.databases.publisher.remove_spooled", lambda *_: None
            )
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert all(path.read_bytes() == content for path, content in kept)
    assert rows_of(server, table) == wanted
    for publisher in publishers:
        publisher.close()


def test_a_deadlock_is_asked_again(
    postgres: Any, table: str, server: psycopg.Connection, saboteur: Saboteur, tmp_path: Path
) -> None:
    sink = PostgresSink(postgres.dsn, table=table, mode="upsert", key="id", create=True)
    owner = context(tmp_path, incarnation=secrets.token_hex(8), schema=PLAIN)
    publisher = sink.publisher(owner)
    publisher.publish(0, stage(sink, owner, 0, [{"id": n, "epoch": 0} for n in (1, 2)]))
    with psycopg.connect(postgres.dsn) as other:
        other.execute(f'update "{table}" set epoch = 7 where id = 2')
        asked = threading.Thread(
            target=lambda: other.execute(f'update "{table}" set epoch = 7 where id = 1')
        )

        def block(connection: Any) -> None:
            # Ours has locked row 1 and row 2 is the other's, which now asks for row 1.
            connection.execute(f'select from "{table}" where id = 1 for update')
            connection.execute("set local deadlock_timeout = '50ms'")
            asked.start()

        saboteur.arm(3, block)
        with pytest.raises(SinkError, match="deadlock") as caught:
            publisher.publish(1, stage(sink, owner, 1, [{"id": n, "epoch": 1} for n in (1, 2)]))
        assert not isinstance(caught.value, SinkRefused)
        asked.join(10)
        other.commit()
    again = stage(sink, owner, 1, [{"id": n, "epoch": 1} for n in (1, 2)])
    publisher.publish(1, again)
    assert rows_of(server, table) == [(1, 1), (2, 1)]
    publisher.close()


def test_a_transaction_that_cannot_be_serialized_is_asked_again(
    postgres: Any, table: str, server: psycopg.Connection, saboteur: Saboteur, tmp_path: Path
) -> None:
    strict = {"options": "-c default_transaction_isolation=serializable"}
    sink = PostgresSink(postgres.dsn, table=table, create=True, options=strict)
    incarnation = secrets.token_hex(8)
    owner = context(tmp_path, incarnation=incarnation, schema=PLAIN)
    publisher, receipts = sink.publisher(owner), stage(sink, owner, 0, [{"id": 1, "epoch": 0}])

    def meddle(connection: Any) -> None:
        connection.execute("select from headrace_markers")  # it sees this moment from now on
        server.execute(
            "update headrace_markers set at = now() where incarnation = %s", [incarnation]
        )

    saboteur.arm(0, meddle)
    assert patiently(publisher, 0, receipts) == 1
    assert rows_of(server, table) == [(1, 0)]
    publisher.close()


def test_a_new_incarnation_writes_everything_again(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    sink = PostgresSink(postgres.dsn, table=table, create=True)
    for number in range(2):
        owner = context(
            tmp_path / str(number), incarnation=secrets.token_hex(8), schema=PLAIN, fence=2 - number
        )
        publisher = sink.publisher(owner)
        assert publisher.published() is None
        for epoch in range(3):
            publisher.publish(epoch, stage(sink, owner, epoch, [{"id": epoch, "epoch": epoch}]))
        publisher.close()
    assert rows_of(server, table) == [(n, n) for n in range(3) for _ in range(2)]


def test_a_database_that_is_older_than_the_checkpoint_is_refused(
    postgres: Any, table: str, server: psycopg.Connection, tmp_path: Path
) -> None:
    sink, incarnation = PostgresSink(postgres.dsn, table=table, create=True), secrets.token_hex(8)
    owner = context(tmp_path, incarnation=incarnation, schema=PLAIN)
    publisher = sink.publisher(owner)
    for epoch in range(3):
        publisher.publish(epoch, stage(sink, owner, epoch, [{"id": epoch, "epoch": epoch}]))
    server.execute("update headrace_markers set epoch = 1 where incarnation = %s", (incarnation,))
    receipts = stage(sink, owner, 3, [{"id": 3, "epoch": 3}])
    with pytest.raises(SinkRefused, match=r"shows epoch 1 .* is given epoch 3") as caught:
        publisher.publish(3, receipts)
    server.execute(str(caught.value).partition("somewhere else: ")[2])
    publisher.publish(3, receipts)
    assert marker_of(server, incarnation) == [(3, 1)]
    publisher.close()


@pytest.mark.parametrize("at", [5, 7, 8])
def test_a_server_that_is_killed_during_the_publish_ends_with_every_row_once(
    at: int, postgres: Any, table: str, saboteur: Saboteur, tmp_path: Path
) -> None:
    sink = PostgresSink(postgres.dsn, table=table, mode="upsert", key="id", create=True)
    incarnation = secrets.token_hex(8)
    owner = context(tmp_path, incarnation=incarnation, schema=SCHEMA)
    publisher = sink.publisher(owner)
    receipts = [stage(sink, owner, epoch, rows) for epoch, rows in enumerate(epochs())]
    publisher.publish(0, receipts[0])
    saboteur.arm(at, lambda _connection: postgres.kill())
    with pytest.raises(SinkError) as caught:
        publisher.publish(1, receipts[1])
    with pytest.raises(SinkError) as away:
        publisher.publish(1, receipts[1])
    assert not isinstance(caught.value, SinkRefused)
    assert not isinstance(away.value, SinkRefused)
    postgres.start()
    publisher.publish(1, receipts[1])
    publisher.close()
    with psycopg.connect(postgres.dsn, autocommit=True) as server:
        assert rows_of(server, table) == EXPECTED
        assert marker_of(server, incarnation) == [(1, 1)]
        server.execute(f'drop table "{table}"')
