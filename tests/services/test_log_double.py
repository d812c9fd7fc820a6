"""The log in memory answers as brokers do: each statement is made to both, through the library's calls, and compared."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import ConfigResource, NewTopic, OffsetSpec, ResourceType

from headrace.connectors.kafka.clients import opened
from headrace.connectors.kafka.writing.topics import Topics
from headrace.testing.log import Log

pytestmark = pytest.mark.services

WAIT_S = 20.0
COMMITTED, ALL = "read_committed", "read_uncommitted"


class World:
    """Brokers, or a log in memory, with its own topic and a record of what was answered."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.topic = f"double-{uuid.uuid4().hex}"
        self.heard: list[Any] = []
        self.admin = self.open("admin.AdminClient")
        self.admin.create_topics([NewTopic(self.topic, 2, 1)], operation_timeout=WAIT_S)[
            self.topic
        ].result(WAIT_S)

    def open(self, kind: str, **config: Any) -> Any:
        quiet = {"log_level": "0", "error_cb": lambda _: None}
        named = {
            name if name.startswith("on_") else name.replace("_", "."): value
            for name, value in config.items()
        }
        return opened(kind, {"bootstrap.servers": self.address, **quiet, **named})

    def producer(self, name: str = "a") -> Any:
        """A transactional one, initialised."""
        made = self.open("Producer", transactional_id=f"{self.topic}-{name}")
        made.init_transactions(WAIT_S)
        return made

    def send(self, producer: Any, *values: str, partition: int = 0) -> None:
        for value in values:
            producer.produce(self.topic, value.encode(), b"key", partition)
        assert producer.flush(WAIT_S) == 0

    def transact(self, producer: Any, *values: str, commit: bool = True) -> None:
        producer.begin_transaction()
        self.send(producer, *values)
        (producer.commit_transaction if commit else producer.abort_transaction)(WAIT_S)

    def hear(self, name: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        """Note what a call answers: its result, or the code of its error and whether it is fatal."""
        try:
            self.heard.append((name, call(*arguments, **named)))
        except KafkaException as error:
            self.heard.append((name, _code(error)))
        except SystemError as error:
            self.heard.append((name, _code(error.__cause__ or error.__context__)))
        except RuntimeError as error:
            self.heard.append((name, str(error)))

    def read(self, isolation: str, partition: int = 0, start: int = 0) -> list[tuple[int, Any]]:
        """What a consumer gets up to the end of the partition, that included."""
        with self.consumer(isolation) as consumer:
            consumer.assign([TopicPartition(self.topic, partition, start)])
            found: list[tuple[int, Any]] = []
            until = time.monotonic() + WAIT_S
            while not found or not isinstance(found[-1][1], str):
                assert time.monotonic() < until
                found += map(_seen, consumer.consume(100, 0.02))
            return found

    @contextmanager
    def consumer(self, isolation: str) -> Iterator[Any]:
        made = self.open(
            "Consumer",
            group_id="double",
            isolation_level=isolation,
            enable_partition_eof="true",
            auto_offset_reset="error",
            # The end of a partition is reported by an empty answer.
            fetch_wait_max_ms="10",
        )
        try:
            yield made
        finally:
            made.close()

    def ends(self) -> dict[str, list[int]]:
        """Where partition 0 begins and ends for each kind of reader: as an administrator and as a consumer asks."""
        found = {}
        for name, level in (
            (COMMITTED, IsolationLevel.READ_COMMITTED),
            (ALL, IsolationLevel.READ_UNCOMMITTED),
        ):
            place = TopicPartition(self.topic, 0)
            asked = self.admin.list_offsets(
                {place: OffsetSpec.latest()}, isolation_level=level, request_timeout=WAIT_S
            )
            with self.consumer(name) as consumer:
                marks = consumer.get_watermark_offsets(place, timeout=WAIT_S)
            found[name] = [asked[place].result(WAIT_S).offset, *marks]
        return found

    def await_marks(self) -> None:
        """Brokers answer before they write the marks of a transaction."""
        Topics(self.address, {}).await_decided({self.topic: 2})

    def await_end(self, offset: int) -> None:
        """The same while another transaction is open: wait until partition 0 has so many offsets."""
        until = time.monotonic() + WAIT_S
        while self.ends()[ALL][0] < offset:
            assert time.monotonic() < until


def _code(error: Any) -> tuple[str, bool]:
    assert isinstance(error, KafkaException)
    return error.args[0].name(), error.args[0].fatal()


def _seen(message: Any) -> tuple[int, Any]:
    error = message.error()
    return message.offset(), message.value() if error is None else error.name()


def marks_take_offsets(world: World) -> None:
    producer, plain = world.producer(), world.open("Producer")
    world.transact(producer, "a", "b")
    world.transact(producer, "c", commit=False)
    world.transact(producer, "d")
    world.await_marks()
    world.send(plain, "e")
    world.heard += [world.read(COMMITTED), world.read(ALL), world.read(COMMITTED, 1), world.ends()]
    world.heard += [world.read(COMMITTED, start=4), world.read(ALL, start=2)]


def a_transaction_that_wrote_nothing_leaves_no_mark(world: World) -> None:
    producer = world.producer()
    world.transact(producer)
    world.transact(producer, commit=False)
    world.transact(producer, "a")
    world.await_marks()
    world.heard += [world.read(ALL), world.ends()]


def an_open_transaction_hides_what_follows_it(world: World) -> None:
    first, second, plain = world.producer("a"), world.producer("b"), world.open("Producer")
    world.send(plain, "a")
    first.begin_transaction()
    world.send(first, "b")
    world.transact(second, "c")
    world.await_end(4)
    world.send(plain, "d")
    world.heard += [world.read(COMMITTED), world.read(ALL), world.ends()]
    first.abort_transaction(WAIT_S)
    world.await_marks()
    world.heard += [world.read(COMMITTED), world.read(ALL), world.ends()]


def a_newer_producer_fences_and_aborts(world: World) -> None:
    older = world.producer()
    older.begin_transaction()
    world.send(older, "a")
    newer = world.producer()
    world.heard += [world.read(COMMITTED), world.ends()]
    world.hear("commit", older.commit_transaction, WAIT_S)
    world.hear("commit again", older.commit_transaction, WAIT_S)
    world.hear("begin", older.begin_transaction)
    world.hear("produce", older.produce, world.topic, b"x", b"k", 0)
    world.hear("abort", older.abort_transaction, WAIT_S)
    world.transact(newer, "b")
    world.await_marks()
    world.heard += [world.read(COMMITTED), world.read(ALL)]


def one_that_is_fenced_learns_it_from_its_next_record(world: World) -> None:
    older = world.producer()
    newer = world.producer()
    world.hear("begin", older.begin_transaction)
    world.hear("produce", older.produce, world.topic, b"x", b"k", 0)
    world.hear("flush", older.flush, WAIT_S)
    world.hear("commit", older.commit_transaction, WAIT_S)
    world.hear("abort", older.abort_transaction, WAIT_S)
    world.transact(newer, "a")
    world.await_marks()
    world.heard += [world.read(ALL)]


def calls_out_of_order_are_refused(world: World) -> None:
    fresh = world.open("Producer", transactional_id=f"{world.topic}-fresh")
    world.hear("begin first", fresh.begin_transaction)
    world.hear("produce first", fresh.produce, world.topic, b"x", b"k", 0)
    ready = world.producer()
    world.hear("produce outside", ready.produce, world.topic, b"x", b"k", 0)
    world.hear("commit outside", ready.commit_transaction, WAIT_S)
    world.hear("abort outside", ready.abort_transaction, WAIT_S)
    ready.begin_transaction()
    world.hear("begin twice", ready.begin_transaction)
    world.hear("too large", ready.produce, world.topic, b"x" * 2_000_000, b"k", 0)


def a_record_that_is_not_delivered_fails_the_commit(world: World) -> None:
    lost: list[str] = []
    producer = world.open(
        "Producer",
        transactional_id=f"{world.topic}-lost",
        on_delivery=lambda error, _: lost.append(error.name()),
        delivery_report_only_error=True,
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(world.topic, b"a", b"k", 0)
    producer.produce(world.topic, b"b", b"k", 7)
    world.hear("flush", producer.flush, WAIT_S)
    world.heard.append(list(lost))
    world.hear("commit", producer.commit_transaction, WAIT_S)
    world.hear("abort", producer.abort_transaction, WAIT_S)
    world.transact(producer, "c")
    # It knows the topic by now.
    producer.begin_transaction()
    world.hear("produce", producer.produce, world.topic, b"d", b"k", 7)
    world.hear("commit", producer.commit_transaction, WAIT_S)
    world.await_marks()
    world.heard += [world.read(COMMITTED), world.read(ALL)]


def offsets_that_do_not_exist_stop_a_consumer(world: World) -> None:
    world.send(world.open("Producer"), "a", "b")
    with world.consumer(COMMITTED) as consumer:
        consumer.assign([TopicPartition(world.topic, 0, 9)])
        world.heard += [_seen(message) for message in consumer.consume(1, WAIT_S)]
        world.heard += [_seen(message) for message in consumer.consume(1, 0.5)]
        consumer.assign([TopicPartition(world.topic, 0, 1)])
        world.heard += [_seen(message) for message in consumer.consume(2, WAIT_S)]
        place = TopicPartition(world.topic, 5)
        world.hear("marks", consumer.get_watermark_offsets, place, timeout=WAIT_S)
    world.hear("closed", consumer.consume, 1, 0)


def administrators_ask_for_topics_and_groups(world: World) -> None:
    admin, topic = world.admin, world.topic
    world.send(world.open("Producer"), "a", "b")
    world.heard.append(topic in admin.list_topics(timeout=WAIT_S).topics)
    for name in (topic, "not-there"):
        described = admin.describe_topics(TopicCollection([name]), request_timeout=WAIT_S)[name]
        world.hear("partitions", lambda one=described: [p.id for p in one.result().partitions])
        resource = ConfigResource(ResourceType.TOPIC, name)
        settings = admin.describe_configs([resource], request_timeout=WAIT_S)[resource]
        for setting in ("cleanup.policy", "max.message.bytes"):
            world.hear(setting, lambda one=settings, key=setting: one.result()[key].value)
    again = admin.create_topics([NewTopic(topic, 1, 1)], operation_timeout=WAIT_S)[topic]
    world.hear("create", again.result, WAIT_S)
    _hear_offsets(world)
    _hear_group(world)


def _hear_offsets(world: World) -> None:
    level = IsolationLevel.READ_UNCOMMITTED
    places = [TopicPartition(world.topic, 0), TopicPartition("not-there", 0)]
    specs = [OffsetSpec.earliest(), OffsetSpec.for_timestamp(1), OffsetSpec.for_timestamp(2**45)]
    for place in places:
        for spec in specs:
            asked = world.admin.list_offsets(
                {place: spec}, isolation_level=level, request_timeout=WAIT_S
            )
            world.hear("offset", lambda one=asked[place]: one.result().offset)


def _hear_group(world: World) -> None:
    group = f"group-{world.topic}"

    def offsets(found: Any) -> list[int]:
        return [one.offset for one in found[group].result(WAIT_S).topic_partitions]

    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(world.topic, 0)])
    given = ConsumerGroupTopicPartitions(group, [TopicPartition(world.topic, 0, 2)])
    admin = world.admin
    for ask, request in (
        (admin.list_consumer_group_offsets, wanted),
        (admin.alter_consumer_group_offsets, given),
        (admin.list_consumer_group_offsets, wanted),
    ):
        world.heard.append(offsets(ask([request], request_timeout=WAIT_S)))


STATEMENTS: Sequence[Callable[[World], None]] = (
    marks_take_offsets,
    a_transaction_that_wrote_nothing_leaves_no_mark,
    an_open_transaction_hides_what_follows_it,
    a_newer_producer_fences_and_aborts,
    one_that_is_fenced_learns_it_from_its_next_record,
    calls_out_of_order_are_refused,
    a_record_that_is_not_delivered_fails_the_commit,
    offsets_that_do_not_exist_stop_a_consumer,
    administrators_ask_for_topics_and_groups,
)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.__name__)
def test_both_answer_alike(kafka: Any, statement: Callable[[World], None]) -> None:
    log = Log()
    brokers, double = World(kafka.bootstrap), World(log.address)
    statement(brokers)
    statement(double)
    assert double.heard == brokers.heard
    assert brokers.heard
