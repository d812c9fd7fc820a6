"""A Kafka topic as a sink: exactly once by default, through the spool, transactions and markers.

The sink itself only holds what the user said. Rows are encoded and staged in the workers (`staging`); lanes publish
durable epochs in transactions (`publishing`, `lane`) and prove them by markers (`markers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

import pyarrow as pa

from headrace.config import to_us
from headrace.connectors.kafka.options import check_bootstrap, check_options
from headrace.connectors.kafka.writing.columns import check_columns
from headrace.connectors.kafka.writing.encoding import Layout, RecordEncoder
from headrace.connectors.kafka.writing.opening import SinkPlan, opened_publisher
from headrace.connectors.kafka.writing.staging import KafkaStager
from headrace.connectors.kafka.writing.topics import NewTopic
from headrace.endpoints import DeliveryGuarantee, Publisher, Sink, SinkContext, Stager
from headrace.errors import BuildError
from headrace.formats.messages import MessageFormat, message_format
from headrace.secrets import hidden

__all__ = ["KafkaSink"]

_OWNED = {
    "transactional.id": "it is made of checkpoint, sink and lane",
    "transaction.timeout.ms": "use transaction_timeout=",
    "enable.idempotence": "use guarantee=",
    "acks": "use guarantee=",
    "request.required.acks": "use guarantee=",
    "partitioner": "rows go to partitions as Kafka's own clients send them, or use partition_by=",
}


class KafkaSink(Sink):
    """Write rows to a topic, or to the topics that a column names.

        revenue.sink_to(KafkaSink("localhost:9092", topic="revenue", key="customer"), uid="revenue")

    `key` is one column (written as text: strings in UTF-8, integers in decimal, bytes as they are) or several (a
    JSON object); `key_format` says otherwise. A key's partition is the one that Kafka's own clients choose
    (murmur2); rows without a key go round. `partition_by` is an integer column with the partition itself. `headers`
    is a column of maps, `timestamp` one of instants. The value has all columns but `topic_column` and `headers`.

    `mode="upsert"` is for compacted topics: the last value of a key is true. Rows with the column `change` are
    written as what they mean: "+I" and "+U" as values, "-D" as a tombstone, and so a "-U" that no row of its key
    follows.

    `guarantee`: exactly once (readers use `isolation.level=read_committed`), at least once, or none. Publishing runs
    in lanes, side by side; their number is fixed at the first start (the topic's partitions, at most 4). If a topic
    gets more partitions, keys move as with every Kafka client, from the next start on.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str | None = None,
        *,
        topic_column: str | None = None,
        format: str | MessageFormat = "json",
        key: str | Sequence[str] = (),
        key_format: str | MessageFormat | None = None,
        partition_by: str | None = None,
        headers: str | None = None,
        timestamp: str | None = None,
        guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
        mode: Literal["append", "upsert"] = "append",
        lanes: int | None = None,
        create: NewTopic | None = None,
        transaction_timeout: timedelta = timedelta(minutes=15),
        control_topic: str = "headrace-markers",
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._layout = Layout(
            topic=topic,
            topic_column=topic_column,
            format=message_format(format),
            key=(key,) if isinstance(key, str) else tuple(key),
            key_format=key_format,
            partition_by=partition_by,
            headers=headers,
            timestamp=timestamp,
            upsert=mode == "upsert",
        )
        _check_choices(self._layout, mode, lanes)
        _check_topics(topic, control_topic, create)
        self._plan = SinkPlan(
            bootstrap=check_bootstrap(bootstrap),
            options=check_options(bootstrap, options, _OWNED),
            topic=topic,
            guarantee=_guarantee(guarantee),
            lanes=lanes,
            create=create,
            transaction_timeout_ms=to_us(transaction_timeout, "transaction_timeout") // 1_000,
            control_topic=control_topic,
            keyed=bool(self._layout.key),
        )
        self._encoder: tuple[pa.Schema, RecordEncoder] | None = None

    def __repr__(self) -> str:
        plan, layout = self._plan, self._layout
        place = repr(plan.topic) if plan.topic else f"topic_column={layout.topic_column!r}"
        shown = f", options={hidden(plan.options)}" if plan.options else ""
        return f"KafkaSink({plan.bootstrap!r}, {place}, format={layout.format.name!r}{shown})"

    def __getstate__(self) -> dict[str, Any]:
        """Encoders stay where they were made."""
        return {**self.__dict__, "_encoder": None}

    def validate(self, schema: pa.Schema) -> None:
        """Refuse columns that are absent or cannot be what they should."""
        check_columns(self._layout, schema)

    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        """Begin to encode and stage one task's rows."""
        if self._encoder is None or self._encoder[0] != context.schema:
            self._encoder = context.schema, RecordEncoder(self._layout, context.schema)
        return KafkaStager(self._encoder[1], context, epoch, task)

    def publisher(self, context: SinkContext) -> Publisher:
        """Look for the topics, create what should be created, and take the lanes over."""
        return opened_publisher(self._plan, context)


def _check_choices(layout: Layout, mode: str, lanes: int | None) -> None:
    if mode not in ("append", "upsert"):
        raise BuildError(f'mode is "append" or "upsert", not {mode!r}')
    if bool(layout.topic) == bool(layout.topic_column):
        raise BuildError("a Kafka sink has topic= or topic_column=, one of the two")
    if layout.upsert and not layout.key:
        raise BuildError('mode="upsert" needs key=: the columns whose last value is true')
    if layout.upsert and layout.format.changes:
        raise BuildError(
            f'format {layout.format.name!r} writes changes as messages of their own: use mode="append"'
        )
    if lanes is not None and not 1 <= lanes <= 64:
        raise BuildError(f"lanes is a number from 1 to 64, not {lanes}")


def _guarantee(given: object) -> DeliveryGuarantee:
    try:
        return DeliveryGuarantee(given)
    except ValueError:
        names = ", ".join(f"hr.DeliveryGuarantee.{known.name}" for known in DeliveryGuarantee)
        raise BuildError(f"guarantee is one of {names}, not {given!r}") from None


def _check_topics(topic: str | None, control_topic: object, create: object) -> None:
    if not isinstance(control_topic, str) or not control_topic or control_topic == topic:
        raise BuildError(
            f"control_topic is the name of a topic for markers alone, not {control_topic!r}"
        )
    if create is not None and not isinstance(create, NewTopic):
        raise BuildError(f"create is a kafka.NewTopic(partitions=...), not {create!r}")
