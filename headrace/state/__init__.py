"""State that functions and triggers declare on their class, with its type:

    class Alerts(hr.KeyedProcessFunction):
        shown: hr.state.Value[int]
        seen: hr.state.Map[str, datetime] = hr.state.TTL(timedelta(hours=1))
        total: hr.state.Reducing[int] = hr.state.keep(reduce=operator.add)

The type is an annotation as in schemas: what Arrow can hold, or anything with a codec. Values are stored as
Arrow, never as pickles. What stands behind `=` says how long state is kept and how it is folded.
"""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from headrace.state.codecs import Codec, register_codec
from headrace.state.declared import FOREVER, Keep, StateKind, StateSpec, declared, keep, state_specs
from headrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from headrace.state.handles import (
    Aggregating,
    Broadcast,
    List,
    Map,
    OperatorList,
    OperatorUnion,
    Reducing,
    Value,
)

if TYPE_CHECKING:
    # It stands behind `=` where the annotation is that of a handle; a type checker must let it.
    def TTL(  # noqa: N802 - a class where it runs
        ttl: timedelta,
        time: Literal["event", "processing"] = "event",
        update: Literal["write", "read_and_write"] = "write",
        visibility: Literal["never_expired", "until_cleaned"] = "never_expired",
    ) -> Any:
        """State that is forgotten when it was not touched for a while."""
else:
    from headrace.state.ttl import TTL

__all__ = [
    "FOREVER",
    "TTL",
    "Aggregating",
    "AggregatingStateDescriptor",
    "Broadcast",
    "Codec",
    "Keep",
    "List",
    "ListStateDescriptor",
    "Map",
    "MapStateDescriptor",
    "OperatorList",
    "OperatorUnion",
    "Reducing",
    "ReducingStateDescriptor",
    "StateDescriptor",
    "StateKind",
    "StateSpec",
    "Value",
    "ValueStateDescriptor",
    "declared",
    "keep",
    "register_codec",
    "state_specs",
]
