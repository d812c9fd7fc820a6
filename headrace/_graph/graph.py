"""The graph that builder calls write: append-only, so a stream that exists never changes its meaning.

A node's inputs are always in the graph before it; the order of numbers is therefore a topological order.
Uids are unique. Deliberately absent: checks of what a step means; builders and `validate` make those.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from headrace._graph.nodes import ERRORS, AssignTimestamps, MapBatches, Node, Port, WindowStep
from headrace._graph.places import calling_line
from headrace.errors import BuildError
from headrace.watermarks import CLOCK

__all__ = ["Graph", "keeps_origins", "sources_of", "timed_ports", "timekeepers", "upstream"]

_N = TypeVar("_N", bound=Node)

# Uids become names of files, metrics and transactions.
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Graph:
    """The nodes of one job, in the order of the user's calls."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._by_uid: dict[str, Node] = {}
        self._generated: set[int] = set()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes; the number of a node is its place."""
        return tuple(self._nodes)

    @property
    def generated(self) -> tuple[Node, ...]:
        """The nodes whose uid the user did not choose."""
        return tuple(node for node in self._nodes if node.id in self._generated)

    def add(self, kind: type[_N], /, *, uid: str | None = None, **fields: Any) -> _N:
        """Append a node. Without a uid it gets one from its verb: `window-1`, `window-2`, ..."""
        node = kind(
            id=len(self._nodes),
            uid=self._free_uid(kind.verb) if uid is None else self._checked_uid(uid),
            where=calling_line(),
            **fields,
        )
        self._nodes.append(node)
        self._by_uid[node.uid] = node
        if uid is None:
            self._generated.add(node.id)
        return node

    def schema(self, port: Port) -> pa.Schema:
        """The columns of the rows of a port."""
        return self._nodes[port.node].output_schema(port.output)

    def _checked_uid(self, uid: Any) -> str:
        if not isinstance(uid, str) or not _UID.fullmatch(uid):
            raise BuildError(
                f"uid={uid!r} cannot be used: a uid is 1 to 100 letters, digits, '.', '_' or '-', and"
                " begins with a letter or digit."
            )
        if (taken := self._by_uid.get(uid)) is not None:
            raise BuildError(
                f"The uid '{uid}' at {calling_line()} is taken by the {taken.verb} at {taken.where};"
                " a uid names one step of a job, because its state and output are found by it."
            )
        return str(uid)

    def _free_uid(self, verb: str) -> str:
        # Counted per verb, so that a new map does not rename a window and lose its state.
        number = 1 + sum(node.verb == verb and node.id in self._generated for node in self._nodes)
        while (uid := f"{verb}-{number}") in self._by_uid:
            number += 1
        return uid


def upstream(nodes: Iterable[Node], ports: Iterable[Port]) -> set[Port]:
    """These ports and all whose rows reach them."""
    return _walk(nodes, ports, lambda node: node.inputs)


def timed_ports(nodes: Iterable[Node], ports: Iterable[Port]) -> set[Port]:
    """These ports and all whose rows reach them with the timestamps that they have there."""
    return _walk(nodes, ports, lambda node: node.time_inputs if _time_of(node) is None else ())


def timekeepers(nodes: Iterable[Node], ports: Iterable[Port]) -> tuple[str, ...]:
    """What rows at these ports are judged by: uids of sources and of assigning steps, and the clock."""
    nodes = tuple(nodes)
    reached = {port.node for port in timed_ports(nodes, ports)}
    found = [_time_of(node) for node in nodes if node.id in reached]
    return tuple(dict.fromkeys(entry for entry in found if entry is not None))


def keeps_origins(nodes: Iterable[Node], ports: Iterable[Port]) -> bool:
    """Whether the source partition of every row at these ports is known."""
    nodes = tuple(nodes)
    ports = upstream(nodes, ports)
    reached = {port.node for port in ports}
    # Dead letters know it as text only, and a function on batches may return other rows.
    return all(port.output != ERRORS for port in ports) and not any(
        node.keyed or isinstance(node, MapBatches) for node in nodes if node.id in reached
    )


def sources_of(nodes: Iterable[Node], ports: Iterable[Port]) -> tuple[Node, ...]:
    """The nodes without inputs whose rows reach these ports, in the order of the graph."""
    nodes = tuple(nodes)
    reached = {port.node for port in upstream(nodes, ports)}
    return tuple(node for node in nodes if node.id in reached and not node.inputs)


def _walk(
    nodes: Iterable[Node], ports: Iterable[Port], before: Callable[[Node], Sequence[Port]]
) -> set[Port]:
    by_id = {node.id: node for node in nodes}
    waiting, seen = list(ports), set[Port]()
    while waiting:
        port = waiting.pop()
        if port not in seen:
            seen.add(port)
            waiting.extend(before(by_id[port.node]))
    return seen


def _time_of(node: Node) -> str | None:
    """The watermark that a step gives to what comes out of it; None if that of its input stays."""
    if isinstance(node, WindowStep) and node.window.time == "processing":
        return CLOCK
    return node.uid if isinstance(node, AssignTimestamps) or not node.inputs else None
