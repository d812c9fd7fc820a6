"""From the graph to the plan: drop what reaches no sink, number the stages, wire the ports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headrace._graph.graph import upstream
from headrace._graph.nodes import CodeStep, Node, Port, Repartition, WriteSink
from headrace._graph.plan import Plan
from headrace._plan.depths import measure
from headrace._plan.narrowing import narrowed
from headrace._plan.rewrites import rewritten
from headrace._plan.signature import digest, signature

__all__ = ["compile_plan", "reaching_a_sink", "with_limit"]


def compile_plan(nodes: Sequence[Node], job: str, shards: int) -> Plan:
    """The plan of a graph. Steps whose rows reach no sink are left out: running them changes nothing."""
    kept = rewritten(reaching_a_sink(nodes))
    depths = measure(kept)
    return Plan(
        job=job,
        shards=shards,
        nodes={node.id: node for node in narrowed(kept)},
        consumers=_consumers(kept),
        stage_of=dict(depths.stage_of),
        feeds=dict(depths.feeds),
        digest=digest(signature(kept)),
    )


def with_limit(nodes: Sequence[Node], limit_us: int | None) -> tuple[Node, ...]:
    """The nodes with a limit for calls of user code where they have none of their own."""
    if limit_us is None:
        return tuple(nodes)
    return tuple(
        replace(node, limit_us=limit_us)
        if isinstance(node, CodeStep | Repartition) and node.limit_us is None
        else node
        for node in nodes
    )


def reaching_a_sink(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes on a way to a sink, through whichever output."""
    sinks = [node for node in nodes if isinstance(node, WriteSink)]
    useful = {port.node for port in upstream(nodes, (p for sink in sinks for p in sink.inputs))}
    useful.update(sink.id for sink in sinks)
    return tuple(node for node in nodes if node.id in useful)


def _consumers(nodes: Iterable[Node]) -> Mapping[Port, tuple[tuple[int, int], ...]]:
    # A stream that is united with itself is consumed twice, so a node may stand here twice.
    taken: dict[Port, list[tuple[int, int]]] = {}
    for node in nodes:
        for side, port in enumerate(node.inputs):
            taken.setdefault(port, []).append((node.id, side))
    return {port: tuple(ids) for port, ids in taken.items()}
