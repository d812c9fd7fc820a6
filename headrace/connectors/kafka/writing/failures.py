"""What an error of the client library means for a publication: asked again, or refused until somebody acts.

Nothing here decides whether an epoch is visible: whatever went wrong, the producer is given up, a new one ends what
was in flight, and the marker says what became of it.
"""

from __future__ import annotations

from headrace.connectors.kafka.clients import Complaints, is_final, library, sentence
from headrace.errors import SinkError, SinkRefused

__all__ = ["code_of", "is_abortable", "is_fenced", "is_missing", "sink_failure", "too_large"]

_MISSING = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"})
#: Wrong in a request to create a topic, in the settings of a producer or in a row: the same request fails again.
_WRONG = {
    "INVALID_TRANSACTION_TIMEOUT": (
        "transaction_timeout is longer than the broker's transaction.max.timeout.ms; make it shorter"
    ),
    "INVALID_REPLICATION_FACTOR": (
        "the cluster has too few brokers for so many replicas; say how many with replication=, or create it yourself"
    ),
    "INVALID_PARTITIONS": "the number of partitions is not possible",
    "INVALID_CONFIG": "a setting of the topic is not possible",
    "POLICY_VIOLATION": "a policy of the cluster forbids it",
    "INVALID_TIMESTAMP": (
        "a row's timestamp is further from now than the topic takes; raise message.timestamp.after.max.ms or"
        " message.timestamp.before.max.ms of the topic; the rows stay staged"
    ),
    "INVALID_RECORD": (
        "the topic does not take such rows; a compacted one takes none without a key: filter such rows, and"
        " set its cleanup.policy to delete until these are written; the rows stay staged"
    ),
}


def code_of(error: object) -> str:
    """The library's name of what went wrong; empty if it is no error of the library."""
    inner = error.args[0] if isinstance(error, library().KafkaException) and error.args else error
    return str(inner.name()) if isinstance(inner, library().KafkaError) else ""


def is_missing(error: object) -> bool:
    """Whether a topic or a partition is not there."""
    return code_of(error) in _MISSING


def is_fenced(error: object) -> bool:
    """Whether this producer will never do anything again, most often because another has its name."""
    return code_of(error) in {"_FENCED", "_FATAL"}


def is_abortable(error: BaseException) -> bool:
    """Whether a transaction can be ended by the producer that began it: neither fenced nor out of reach."""
    if not isinstance(error, library().KafkaException):
        return not isinstance(error, SinkError) or not error.retryable
    inner = error.args[0]
    return not inner.fatal() and code_of(error) not in {"_TIMED_OUT", "_TRANSPORT", "_FENCED"}


def sink_failure(error: object, what: str, complaints: Complaints | None = None) -> SinkError:
    """The error to raise for one of the library's; `what` says what could not be done."""
    code = code_of(error)
    if code in _WRONG:
        return SinkRefused(f"{what}: {_WRONG[code]} ({sentence(error)})")
    if is_final(error):
        return SinkRefused(f"{what}: {sentence(error)}; see options= and the rights of this user")
    if complaints is None:
        return SinkError(f"{what}: {sentence(error)}")
    refusal = complaints.refusal()
    if refusal is not None:
        return SinkRefused(f"{what}: {refusal}; see options= and the rights of this user")
    told = complaints.why(error)
    return SinkError(
        f"{what}: {sentence(error)}" + ("" if told == sentence(error) else f": {told}")
    )


def too_large(topic: str, key: bytes | None, size: int, limit: int) -> SinkRefused:
    """A row that the topic does not take, or that was sent with more than it takes at a time."""
    if size <= limit:
        return SinkRefused(
            f"rows were sent to topic {topic!r} up to {limit:,} bytes at a time, and it takes less: say with"
            ' "message.max.bytes" in options= what its max.message.bytes is; the rows stay staged'
        )
    shown = "without a key" if key is None else f"with key {key[:100]!r}"
    return SinkRefused(
        f"a row {shown} is {size:,} bytes, and topic {topic!r} takes {limit:,}: raise max.message.bytes of the"
        ' topic, and "message.max.bytes" in options= if it is set there or rows name their topics; the rows stay'
        " staged"
    )
