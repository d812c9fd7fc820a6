"""A job in this process: plan an epoch, run it, make it durable, publish it; crash, restart, rescale.

The order of steps is that of a job on Spark, and so are the promises: what is published follows from durable
epochs alone, and an epoch that was planned is run again as it was planned. What a crash loses is lost here
too: `restart` keeps `Memory` and the replicas of state, which on Spark lie in files, and nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from headrace._commit.control import Request
from headrace._commit.files import make_directory
from headrace._commit.paths import Layout
from headrace._epochs.offset import Offset
from headrace._epochs.planner import PlannerSettings, plan
from headrace._epochs.vectors import next_due_us
from headrace._graph.plan import Plan
from headrace._local.epoch import EpochRun
from headrace._local.memory import Memory, Stores
from headrace._plan.timing import planner_settings
from headrace._runtime import registry
from headrace._runtime.lifecycle import close_all
from headrace._runtime.state import MemoryArrays, ShardState
from headrace.config import Epochs
from headrace.endpoints import Enumerator, Publisher, SinkContext
from headrace.errors import BuildError
from headrace.keys import groups_of
from headrace.watermarks import END_OF_TIME

__all__ = ["POINTS", "CrashPoint", "LocalCrash", "LocalJob"]

#: Where a crash can be asked for: behind the plan of an epoch, behind its first task, behind all tasks
#: but before it is durable, before and behind its publication.
CrashPoint = Literal["planned", "task", "staged", "durable", "published"]
POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)


class LocalCrash(Exception):
    """The process "died" here; `restart` goes on."""


@dataclass
class LocalJob:
    """One job with its own clock. It begins with `restart`."""

    plan: Plan
    directory: Path
    epochs: Epochs
    clock_us: Callable[[], int]
    #: How many tasks read an epoch.
    tasks: int = 1
    #: Each is reached once.
    crashes: set[tuple[int, CrashPoint]] = field(default_factory=set)
    #: No step is given an epoch that it is due beyond this clock.
    until_us: Callable[[], int] = lambda: END_OF_TIME
    # what survives a crash
    memory: Memory = field(default_factory=Memory)
    incarnation: str = field(default_factory=lambda: secrets.token_hex(16))
    # working state
    _replicas: dict[tuple[str, int], MemoryArrays] = field(default_factory=dict)
    _enumerators: dict[str, Enumerator] = field(default_factory=dict)
    _publishers: dict[str, Publisher] = field(default_factory=dict)
    #: The last epoch that the publishers of this run were given.
    _shown: int = -1
    #: How often it was started.
    _fence: int = 0

    def __post_init__(self) -> None:
        self._layout = Layout(self.directory)
        wrong = {point for _, point in self.crashes} - set(POINTS)
        if wrong:
            raise BuildError(f"There is no crash point {wrong.pop()!r}; there are {POINTS}.")

    @property
    def finished(self) -> bool:
        """The final epoch is durable."""
        return self.memory.last.final

    @property
    def settings(self) -> PlannerSettings:
        """What the planner knows of the job."""
        return planner_settings(self.plan, self.epochs)

    @property
    def due_us(self) -> int | None:
        """The clock at which a step is due, though nothing may come."""
        return next_due_us(self.memory.facts, self.settings)

    def advance(self, request: Request = "run") -> Offset | None:
        """Run the next epoch and publish it; None if there is nothing to do now."""
        offset = self.memory.pending or self._plan(request)
        if offset is None:
            return None
        self._reach(offset, "planned")
        began_us = self.clock_us()
        stores = self.memory.working_stores(self.plan)
        reports = self._run(offset, stores).reports()
        self._reach(offset, "staged")
        duration_us = self.clock_us() - began_us
        self.memory.commit(
            self.plan,
            offset,
            reports,
            stores=stores,
            duration_us=duration_us,
            target_us=self.epochs.target_us,
        )
        self._reach(offset, "durable")
        for uid, enumerator in self._enumerators.items():
            enumerator.durable({name: to for name, (_, to) in offset.ranges.get(uid, {}).items()})
        self._publish()
        return offset

    def restart(self, shards: int | None = None) -> None:
        """Begin anew from what is durable, on another number of shards if that is asked for."""
        self.close()
        self._shown = -1
        self._fence += 1
        if shards is not None and shards != self.plan.shards:
            self._rescale(shards)
        for uid, node in self.plan.sources.items():
            make_directory(self._layout.source(uid))
            self._enumerators[uid] = node.source.enumerator(self._layout.source(uid))
        for uid, sink in self.plan.sinks.items():
            make_directory(self._layout.spool(uid))
            self._publishers[uid] = sink.sink.publisher(self._contexts[uid])
            self._publishers[uid].discard(frozenset(self.memory.receipts))
        self._publish()

    def flush(self) -> None:
        """Let every sink show what it held back."""
        for publisher in self._publishers.values():
            publisher.flush()
        self._publish()

    def close(self) -> None:
        """Release sources and sinks, and close functions."""
        for enumerator in self._enumerators.values():
            enumerator.close()
        for publisher in self._publishers.values():
            publisher.close()
        self._enumerators.clear()
        self._publishers.clear()
        close_all()

    @property
    def _contexts(self) -> Mapping[str, SinkContext]:
        return {
            uid: SinkContext(
                self.plan.job,
                self.incarnation,
                uid,
                node.schema,
                self._layout.spool(uid),
                fence=self._fence,
            )
            for uid, node in self.plan.sinks.items()
        }

    def _plan(self, request: Request) -> Offset | None:
        facts, due_us = self.memory.facts, self.due_us
        if due_us is not None and due_us > self.until_us():
            facts = replace(facts, outlooks={})
        offset = plan(
            self.memory.last,
            facts,
            {uid: enumerator.spans() for uid, enumerator in self._enumerators.items()},
            clock_us=self.clock_us(),
            settings=self.settings,
            request=request,
        )
        if offset is not None:
            # Through its JSON, as through Spark's offset log.
            self.memory.offsets.append(Offset.from_json(offset.to_json()))
        return self.memory.pending

    def _run(self, offset: Offset, stores: Stores) -> EpochRun:
        def open_state(number: int, shard: int) -> ShardState:
            node = self.plan.nodes[number]
            replica = self._replicas.setdefault((node.uid, shard), MemoryArrays())
            groups = groups_of(shard, self.plan.shards)
            state = ShardState(registry.tables(node), stores[node.uid, shard], replica, groups)
            state.open()
            return state

        return EpochRun(
            self.plan,
            offset,
            self._contexts,
            {uid: self._layout.source(uid) for uid in self.plan.sources},
            open_state,
            tasks=self.tasks,
            whole=self.settings.generated,
            done=lambda _stage, _task: self._reach(offset, "task"),
        )

    def _publish(self) -> None:
        for epoch, receipts in sorted(self.memory.receipts.items()):
            if epoch > self._shown:
                for uid, publisher in self._publishers.items():
                    publisher.publish(epoch, [r for r in receipts if r.sink == uid])
                self._reach(self.memory.offsets[epoch], "published")
                self._shown = epoch
        # What a sink holds back to merge it later is needed again after a crash.
        settled = (publisher.settled() for publisher in self._publishers.values())
        done = min((self._shown if at is None else at for at in settled), default=self._shown)
        for epoch in [epoch for epoch in self.memory.receipts if epoch <= done]:
            del self.memory.receipts[epoch]

    def _rescale(self, shards: int) -> None:
        self.memory.rescale(self.plan, shards)
        self.plan = replace(self.plan, shards=shards)
        self._replicas.clear()

    def _reach(self, offset: Offset, point: CrashPoint) -> None:
        if (offset.epoch, point) in self.crashes:
            self.crashes.discard((offset.epoch, point))
            raise LocalCrash(f"epoch {offset.epoch}, {point}")
