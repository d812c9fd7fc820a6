"""The plan: plain data that travels to every worker.

Stage 0 reads. Stage k > 0 hosts every keyed step of depth k. A stateless step has no stage: it runs in
each stage in which rows reach it. So the only rows that move between stages are those on the way to a
keyed step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from headrace._graph.nodes import Node, Port, ReadSource, WriteSink

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """A job, ready to run on `shards` shards."""

    job: str
    shards: int
    nodes: Mapping[int, Node]
    #: Who takes the rows of a port, in the order of the user's calls: (node, which of its inputs).
    consumers: Mapping[Port, tuple[tuple[int, int], ...]]
    #: The stage of each keyed node; every other node is absent.
    stage_of: Mapping[int, int]
    #: The uids of the sources that feed a node which goes by time: its watermark is the minimum of theirs.
    feeds: Mapping[int, tuple[str, ...]]
    #: Hash of what a checkpoint depends on (see `signature`).
    digest: str

    @cached_property
    def stages(self) -> int:
        """How many stages there are; 1 means that nothing is keyed and nothing is shuffled."""
        return 1 + max(self.stage_of.values(), default=0)

    @cached_property
    def sources(self) -> Mapping[str, ReadSource]:
        """The sources by uid."""
        return {n.uid: n for n in self.nodes.values() if isinstance(n, ReadSource)}

    @cached_property
    def sinks(self) -> Mapping[str, WriteSink]:
        """The sinks by uid."""
        return {n.uid: n for n in self.nodes.values() if isinstance(n, WriteSink)}

    def hosted(self, stage: int) -> tuple[int, ...]:
        """The keyed nodes of one stage, in the order of the graph."""
        return tuple(sorted(n for n, s in self.stage_of.items() if s == stage))
