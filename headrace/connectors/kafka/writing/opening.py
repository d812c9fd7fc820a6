"""What a Kafka sink does at a start: look for its topics, fix or find its lanes, make the publisher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.connectors.kafka.writing.assignment import Assignment, recorded, written_down
from headrace.connectors.kafka.writing.lane import LaneSettings
from headrace.connectors.kafka.writing.markers import MARKER_TOPIC, Marker
from headrace.connectors.kafka.writing.publishing import KafkaPublisher
from headrace.connectors.kafka.writing.records import Routing
from headrace.connectors.kafka.writing.topics import NewTopic, Topics
from headrace.endpoints import DeliveryGuarantee, SinkContext
from headrace.errors import CheckpointMismatch, SinkRefused

__all__ = ["SinkPlan", "opened_publisher"]

#: More transactions side by side cost a broker more than they gain.
_MOST_LANES = 4


@dataclass(frozen=True)
class SinkPlan:
    """What the user said about publishing."""

    bootstrap: str
    options: Mapping[str, str] = field(repr=False)
    topic: str | None
    guarantee: DeliveryGuarantee
    lanes: int | None
    create: NewTopic | None
    transaction_timeout_ms: int
    control_topic: str
    #: Rows have keys, as far as they are not null.
    keyed: bool = True


def opened_publisher(plan: SinkPlan, context: SinkContext) -> KafkaPublisher:
    """Ask the cluster, and refuse what cannot work before the first row is read."""
    topics = Topics(plan.bootstrap, plan.options)
    if plan.topic is not None:
        topics.partitions(plan.topic, plan.create)
        _check_key(plan, plan.topic, topics)
    assignment = _assignment(plan, context, topics)
    largest = None if plan.topic is None else topics.largest_record(plan.topic)

    def route(named: Sequence[str]) -> Routing:
        wanted = named if plan.topic is None else (plan.topic,)
        counts = {topic: topics.partitions(topic, plan.create) for topic in wanted}
        return Routing(plan.topic or "", assignment.lanes, assignment.spread, counts)

    lanes = [_lane(plan, context, assignment, at, largest) for at in range(assignment.lanes)]
    return KafkaPublisher(context, lanes, topics, route)


def _check_key(plan: SinkPlan, topic: str, topics: Topics) -> None:
    if not plan.keyed and "compact" in (topics.setting(topic, "cleanup.policy") or ""):
        raise SinkRefused(
            f"topic {topic!r} is compacted and takes no rows without a key: say with key= which columns it is"
        )


def _assignment(plan: SinkPlan, context: SinkContext, topics: Topics) -> Assignment:
    known = recorded(context.spool, plan.lanes)
    if known is None:
        return written_down(context.spool, _first(plan, topics))
    if plan.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        if not known.markers:
            # Until now the user wanted less.
            markers = _marker_partitions(plan, topics)
            now = replace(known, markers=markers, control=plan.control_topic)
            return written_down(context.spool, now)
        _check_markers(plan, topics, known)
    return known


def _first(plan: SinkPlan, topics: Topics) -> Assignment:
    """The numbers of a sink that starts for the first time."""
    spread = 1 if plan.topic is None else topics.partitions(plan.topic)
    lanes = plan.lanes or min(spread, _MOST_LANES)
    # Where rows name their topics there is no number to go by; one for each lane gives every lane its share.
    first = Assignment(lanes, lanes if plan.topic is None else spread, 0)
    if plan.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        return first
    return replace(first, markers=_marker_partitions(plan, topics), control=plan.control_topic)


def _marker_partitions(plan: SinkPlan, topics: Topics) -> int:
    """How many partitions the control topic has, which is made if there is none."""
    found = topics.partitions(plan.control_topic, MARKER_TOPIC)
    _check_kept(plan, topics)
    return found


def _check_markers(plan: SinkPlan, topics: Topics, known: Assignment) -> None:
    """Raise unless the proof of what was published is where the first start put it."""
    if known.control not in ("", plan.control_topic):
        raise CheckpointMismatch(
            f"control_topic={plan.control_topic!r}, but the markers of this checkpoint are in {known.control!r}, and"
            f" without them rows would be there twice: write control_topic={known.control!r}, or begin with a"
            " new checkpoint"
        )
    found = topics.count(plan.control_topic)
    if found is None or found < known.markers:
        raise SinkRefused(
            f"the control topic {plan.control_topic!r} is gone, and with it the proof of what this sink has"
            " published: begin with a new checkpoint; or, if the rows of the last epoch may be there twice,"
            f" create it again with cleanup.policy=compact and {known.markers} partitions"
        )
    _check_kept(plan, topics)


def _check_kept(plan: SinkPlan, topics: Topics) -> None:
    """Raise if the brokers remove markers that are old: a job may stand still for longer than that."""
    policy = topics.setting(plan.control_topic, "cleanup.policy")
    if policy is not None and policy != "compact":
        raise SinkRefused(
            f"the control topic {plan.control_topic!r} has cleanup.policy={policy}, so that the proof of what was"
            " published would be removed after a while: set it to compact, or name another topic with"
            " control_topic="
        )


def _lane(
    plan: SinkPlan, context: SinkContext, assignment: Assignment, lane: int, largest: int | None
) -> LaneSettings:
    identity = Marker(
        incarnation=context.incarnation,
        sink=context.uid,
        lane=lane,
        lanes=assignment.lanes,
        fence=context.fence,
        epoch=-1,
    )
    return LaneSettings(
        bootstrap=plan.bootstrap,
        options=plan.options,
        guarantee=plan.guarantee,
        identity=identity,
        control_topic=plan.control_topic,
        control_partition=assignment.marker_partition(identity.key),
        transaction_timeout_ms=plan.transaction_timeout_ms,
        largest_record=largest,
    )
