"""What survives a crash of a local job, and nothing else: the stand-in for Spark's logs and state store.

An epoch works on copies of the chunk logs. `commit` puts them in place together with everything else that
the epoch did, so it is done as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace._commit.ledger import Ledger
from headrace._epochs.facts import Facts
from headrace._epochs.offset import INITIAL, Offset
from headrace._graph.plan import Plan
from headrace._plan.laws import edges_of, laws_of
from headrace._plan.timing import assigned_partitions
from headrace._runtime import registry
from headrace._runtime.audit import audit, counts_of, foreign_state, observed
from headrace._runtime.metrics import added
from headrace._runtime.report import TaskReport
from headrace._runtime.state import MemoryChunkStore
from headrace._runtime.state.log import Manifest
from headrace._runtime.state.rescale import rescale
from headrace.endpoints import Json, Receipt
from headrace.errors import EngineError

__all__ = ["Memory", "Stores"]

#: (uid of a keyed step, shard) -> its chunk log
Stores = Mapping[tuple[str, int], MemoryChunkStore]


@dataclass
class Memory:
    """The offset log, the commit log, the manifests and the state of one job."""

    #: Of every epoch that was planned; the last one may not be durable.
    offsets: list[Offset] = field(default_factory=list)
    #: The facts behind the last durable epoch.
    facts: Facts = field(default_factory=Facts)
    #: What durable epochs staged, until it is published.
    receipts: dict[int, Sequence[Receipt]] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    #: What functions counted, as a manifest has it.
    metrics: dict[str, dict[str, Json]] = field(default_factory=dict)
    #: uid of a keyed step -> shard -> stamp of its state
    stamps: dict[str, dict[str, str]] = field(default_factory=dict)
    stores: Stores = field(default_factory=dict)
    #: The last durable epoch.
    durable: int = -1

    @property
    def last(self) -> Offset:
        """The offset of the last durable epoch."""
        return self.offsets[self.durable] if self.durable >= 0 else INITIAL

    @property
    def pending(self) -> Offset | None:
        """An epoch that was planned but is not durable: it must be run as it was planned."""
        return self.offsets[-1] if len(self.offsets) > self.durable + 1 else None

    def working_stores(self, plan: Plan) -> dict[tuple[str, int], MemoryChunkStore]:
        """Copies of all chunk logs for one epoch."""
        keys = ((plan.nodes[n].uid, shard) for n in plan.stage_of for shard in range(plan.shards))
        empty = MemoryChunkStore()
        return {key: self.stores.get(key, empty).snapshot() for key in keys}

    def commit(
        self,
        plan: Plan,
        offset: Offset,
        reports: Sequence[TaskReport],
        *,
        stores: Stores,
        duration_us: int,
        target_us: int,
    ) -> None:
        """The epoch is durable with all that it did, unless its reports do not make one whole epoch."""
        ledger = self._checked(plan, offset, reports)
        seen = observed(reports)
        metrics = added(self.metrics, seen.metrics)
        self.facts = self.facts.after(
            offset,
            maxima=seen.maxima,
            minima=seen.minima,
            rows=seen.rows,
            size=seen.size,
            duration_us=duration_us,
            outlooks=seen.outlooks,
            generators=seen.generators,
            assigned=assigned_partitions(plan, offset),
            target_us=target_us,
        )
        self.ledger = ledger
        self.metrics = metrics
        self.stamps = seen.stamps
        self.receipts[offset.epoch] = [r for report in reports for r in report.receipts]
        self.stores = stores
        self.durable = offset.epoch

    def rescale(self, plan: Plan, shards: int) -> None:
        """Deal the state of every keyed step out to another number of shards."""
        dealt: dict[tuple[str, int], MemoryChunkStore] = {}
        for number in plan.stage_of:
            node = plan.nodes[number]
            old = [self.stores.get((node.uid, s), MemoryChunkStore()) for s in range(plan.shards)]
            new = [MemoryChunkStore() for _ in range(shards)]
            rescale(old, registry.tables(node), new)
            self.stamps[node.uid] = {str(shard): _stamp(log) for shard, log in enumerate(new)}
            dealt.update({(node.uid, shard): store for shard, store in enumerate(new)})
        self.stores = dealt

    def _checked(self, plan: Plan, offset: Offset, reports: Sequence[TaskReport]) -> Ledger:
        """The ledger with this epoch in it; every row must be accounted for."""
        problem = audit(reports, stages=plan.stages, shards=plan.shards) or foreign_state(
            reports, self.stamps
        )
        if problem is not None:
            raise EngineError(f"Epoch {offset.epoch} is not whole: {problem}")
        ledger = self.ledger.add(counts_of(reports))
        if problems := ledger.problems(laws_of(plan), edges_of(plan)):
            raise EngineError(f"Epoch {offset.epoch} does not add up: {'; '.join(problems)}")
        return ledger


def _stamp(store: MemoryChunkStore) -> str:
    content = store.manifest()
    return "" if content is None else Manifest.from_bytes(content, "a shard").stamp
