"""What a checkpoint depends on, as JSON, and what changed between two of them, as sentences.

In it: which sources there are and what gives their positions a meaning; the uid, keys, window, trigger,
aggregates and declared state of every keyed step, where it stands and what feeds it; the uids of sinks. Not in it: bodies of
user functions, stateless steps, options of sinks, watermark strategies, how long a time to live is. Those may change
between two runs.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from headrace._graph.join_nodes import JoinStep
from headrace._graph.nodes import (
    KeyedProcess,
    LookBackAggregate,
    Node,
    ReadSource,
    WindowProcess,
    WindowStep,
    WriteSink,
)
from headrace._plan.depths import measure
from headrace.aggregates import Aggregate
from headrace.endpoints import Json
from headrace.functions import accumulator_type
from headrace.state import StateSpec, declared
from headrace.triggers import Trigger
from headrace.triggers.builtin import BuiltIn

__all__ = ["describe_change", "digest", "signature"]

_FORMAT = 1


def signature(nodes: Iterable[Node]) -> dict[str, Json]:
    """The signature of a graph: plain JSON, the same for the same graph on every machine."""
    nodes = tuple(nodes)
    depths = measure(nodes)
    return {
        "format": _FORMAT,
        "sources": {n.uid: n.source.signature() for n in nodes if isinstance(n, ReadSource)},
        "steps": {
            n.uid: {
                **_step(n),
                "fed by": sorted(depths.feeds[n.id]),
                "stage": depths.stage_of[n.id],
            }
            for n in nodes
            if isinstance(n, WindowStep | KeyedProcess | JoinStep)
        },
        "sinks": sorted(n.uid for n in nodes if isinstance(n, WriteSink)),
    }


def digest(signed: Mapping[str, Json]) -> str:
    """A short name for a signature."""
    return hashlib.sha256(_canonical(signed).encode()).hexdigest()[:32]


def describe_change(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[str]:
    """What keeps a checkpoint with the signature `old` from carrying on as `new`; empty: nothing."""
    if old.get("format") != new.get("format"):
        return ["it was written by a version of Headrace that describes jobs in another way"]
    return [
        *_named_changes("source", _mapping(old["sources"]), _mapping(new["sources"])),
        *_named_changes("step", _mapping(old["steps"]), _mapping(new["steps"])),
        *_uid_changes("sink", _names(old["sinks"]), _names(new["sinks"])),
    ]


def _step(node: Node) -> dict[str, Json]:
    if isinstance(node, JoinStep):
        return _join(node)
    if isinstance(node, KeyedProcess):
        return _process(node)
    assert isinstance(node, WindowStep)
    return _window(node)


def _join(node: JoinStep) -> dict[str, Json]:
    """Rows are kept as they come, so all columns count; which pairs there are depends on the rest."""
    inputs = list(zip(node.keys, node.input_schemas, strict=True))
    return {
        "operation": node.verb,
        "kept as": type(node).__name__,
        "keys": [[f"{key} ({schema.field(key).type})" for key in keys] for keys, schema in inputs],
        "how": node.how,
        "rows": [[f"{f.name} ({f.type})" for f in schema] for _, schema in inputs],
        **node.signature(),
    }


def _window(node: WindowStep) -> dict[str, Json]:
    return {
        "operation": node.verb,
        "kept as": type(node).__name__,
        "keys": [f"{key} ({node.input_schema.field(key).type})" for key in node.keys],
        "window": node.window.signature(),
        **_firing(node),
        "lateness_us": node.lateness_us,
        "aggregates": [_aggregate(name, a, node.input_schema) for name, a in node.aggregates],
    }


def _firing(node: WindowStep) -> dict[str, Json]:
    """What else the state of a step depends on, where it is not the usual."""
    signed: dict[str, Json] = {}
    if node.accumulation != "accumulating":
        signed["accumulation"] = node.accumulation
    if node.weighted:
        signed["takes back rows"] = True
    trigger = getattr(node, "trigger", None)
    if trigger is not None:
        signed["trigger"] = trigger.name
    if isinstance(node, LookBackAggregate):
        signed["rows"] = _columns(node)
    if isinstance(node, WindowProcess):
        signed |= _kept(node)
    return signed


def _columns(node: WindowStep) -> list[Json]:
    return [f"{field.name} ({field.type})" for field in node.input_schema]


def _kept(node: WindowProcess) -> dict[str, Json]:
    """Rows that windows keep as they are, and what the user's classes keep."""
    signed: dict[str, Json] = {}
    if node.evictor is not None or not node.aggregates:
        signed["rows"] = _columns(node)
    if node.function is not None and (state := _declared(type(node.function))):
        signed["state"] = state
    if state := [kept for written in _written(node.trigger) for kept in _declared(written)]:
        signed["state of the trigger"] = state
    return signed


def _declared(owner: type) -> list[Json]:
    # Classes may be renamed; the names and types of what they keep may not change.
    return [f"{name} ({kind})" for name, (kind, _) in declared(owner).items()]


def _written(trigger: Trigger | None) -> Iterator[type]:
    """The classes of users in a trigger."""
    if isinstance(trigger, BuiltIn):
        for part in trigger.parts:
            yield from _written(part)
    elif trigger is not None:
        yield type(trigger)


def _process(node: KeyedProcess) -> dict[str, Json]:
    # Whether the function is called by row or by batch is not in it: its state lies the same way.
    inputs = list(zip(node.keys, node.input_schemas, strict=True))
    signed: dict[str, Json] = {
        "operation": node.verb,
        "kept as": type(node).__name__,
        "keys": [[f"{key} ({schema.field(key).type})" for key in keys] for keys, schema in inputs],
        "states": [_state(spec) for spec in node.states],
    }
    if node.ordered:
        signed["ordered"] = True
        signed["rows"] = [[f"{f.name} ({f.type})" for f in schema] for _, schema in inputs]
    return signed


def _state(spec: StateSpec) -> str:
    """How long it lives may change; whether it ends, and by which time, decides what is kept beside it."""
    types = [str(kind) for kind in (spec.key_type, spec.type) if kind is not None]
    ends = "" if spec.ttl is None else f", ends in {spec.ttl.time} time"
    return f"{spec.name} ({spec.kind.replace('_', ' ')} of {', '.join(types)}{ends})"


def _aggregate(name: str, aggregate: Aggregate, schema: pa.Schema) -> str:
    if aggregate.function is not None:
        # The class may be renamed and rewritten; the type in which accumulators lie may not change.
        return f"{name} = function with {accumulator_type(aggregate.function)}"
    if aggregate.reducer is not None:
        return f"{name} = reduce with {aggregate.result_type(schema)}"
    inside = [f"{c} ({schema.field(c).type})" for c in (aggregate.column, aggregate.by) if c]
    inside += [f"{option}={value}" for option, value in aggregate.options]
    return f"{name} = {aggregate.kind}({', '.join(inside)})" + (
        "" if aggregate.ddof == 1 else f" ddof={aggregate.ddof}"
    )


def _named_changes(kind: str, old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[str]:
    yield from _uid_changes(kind, old, new)
    for uid in old:
        if uid in new:
            before, after = _mapping(old[uid]), _mapping(new[uid])
            for part in sorted({*before, *after}):
                if _canonical(before.get(part)) != _canonical(after.get(part)):
                    was, now = _text(before.get(part)), _text(after.get(part))
                    yield f"the {kind} '{uid}' had {part} {was} and now has {now}"


def _uid_changes(kind: str, old: Iterable[str], new: Iterable[str]) -> Iterator[str]:
    gone = [uid for uid in old if uid not in new]
    fresh = [uid for uid in new if uid not in old]
    if len(gone) == len(fresh) == 1:
        yield f"the {kind} '{gone[0]}' is gone and '{fresh[0]}' is new (a renamed uid?)"
        return
    yield from (f"the {kind} '{uid}' is gone" for uid in gone)
    yield from (f"the {kind} '{uid}' is new" for uid in fresh)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {"value": value}


def _names(value: Json) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list | tuple) else []


def _text(value: Json) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(part) for part in value)}]"
    if isinstance(value, Mapping):
        return f"({', '.join(f'{name} {_text(part)}' for name, part in value.items())})"
    return "nothing" if value is None else str(value)


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
