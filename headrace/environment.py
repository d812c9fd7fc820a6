"""The environment: one job, from its sources to its start.

It owns the graph that streams write to and hands the finished plan to the engine. Whatever is wrong with
the job itself raises here or on the line of the step, before Spark is loaded.
"""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._graph.explain import explain
from headrace._graph.graph import Graph
from headrace._graph.nodes import AssignTimestamps, Node, Port, ReadSource, Repartition, WriteSink
from headrace._graph.plan import Plan
from headrace._graph.validate import check_columns, dangling, require_runnable
from headrace._plan.capabilities import check_supported
from headrace._plan.depths import measure
from headrace._plan.rewrites import rewritten
from headrace._plan.settings import RunSettings
from headrace._plan.stages import compile_plan, reaching_a_sink, with_limit
from headrace._plan.strategies import check_source_strategy
from headrace.config import Epochs, Restart, to_us
from headrace.endpoints import Source
from headrace.errors import BuildError
from headrace.keys import KEY_GROUPS
from headrace.stream import SourceStream
from headrace.watermarks import WatermarkStrategy

if TYPE_CHECKING:
    from headrace._jobs.handle import JobHandle
    from headrace._jobs.summary import Summary

__all__ = ["Environment"]


class Environment:
    """A job: its name, where its checkpoint lies, and how it is run.

    `shards` is how many parts the state has: the cores at the first start, afterwards what the checkpoint
    says. `epochs` says how the input is cut, `restart` what happens after a failure. `master` is a local
    Spark master and `session` a Spark session of yours; without them Spark is started on this machine with
    all cores. `call_limit` is how long one call of a user's function may take in steps that do not say it themselves;
    without it a call may take any time, since nobody but you can tell a slow one from one that hangs. `verbose` shows what Spark prints instead of keeping it in the checkpoint's `spark.log`.

    >>> from headrace.connectors.memory import MemorySink, MemorySource
    >>> env = Environment("copy", checkpoint="state/copy")
    >>> env.from_source(MemorySource([{"n": 1}]), uid="rows").sink_to(MemorySink(), uid="copied")
    >>> env.explain().splitlines()[0]
    "job 'copy': 1 stage, 0 shuffles"
    """

    def __init__(
        self,
        name: str,
        *,
        checkpoint: str | Path | None = None,
        shards: int | None = None,
        epochs: Epochs | None = None,
        restart: Restart | None = None,
        master: str | None = None,
        session: Any = None,
        call_limit: timedelta | None = None,
        verbose: bool = False,
    ) -> None:
        self._name = _checked_name(name)
        self._checkpoint = None if checkpoint is None else _checked_path(checkpoint)
        self._shards = None if shards is None else _checked_shards(shards)
        self._epochs = _instance(epochs, Epochs, "epochs") or Epochs()
        self._restart = _instance(restart, Restart, "restart") or Restart.exponential()
        self._master = _checked_master(master, session)
        self._session = session
        self._limit_us = None if call_limit is None else to_us(call_limit, "call_limit")
        self._verbose = bool(verbose) or bool(os.environ.get("HEADRACE_VERBOSE"))
        self._graph = Graph()

    @property
    def name(self) -> str:
        """The job's name."""
        return self._name

    @property
    def epochs(self) -> Epochs:
        """How the input is cut."""
        return self._epochs

    @property
    def graph(self) -> Graph:
        """What the builder calls so far have made."""
        return self._graph

    def from_source(
        self, source: Source, *, watermarks: WatermarkStrategy | None = None, uid: str | None = None
    ) -> SourceStream:
        """The rows of a source. With a watermark strategy they have event time, which windows need."""
        if not isinstance(source, Source):
            raise BuildError(
                "from_source takes a source such as files.FileSource(...) or"
                f" generator.Nexmark(...).bids(), not {source!r} ({type(source).__name__})."
            )
        schema = check_columns(source.schema, f"The source {type(source).__name__}")
        if watermarks is not None:
            check_source_strategy(watermarks, source, self._graph.nodes)
        node = self._graph.add(
            ReadSource, uid=uid, inputs=(), schema=schema, source=source, strategy=watermarks
        )
        return SourceStream(self._graph, Port(node.id))

    def explain(self) -> str:
        """The graph, its stages and its shuffles as text."""
        kept = reaching_a_sink(self._graph.nodes)
        running = {node.id: node for node in rewritten(kept)}
        depths = measure(running.values())
        shown = [running.get(node.id, node) for node in self._graph.nodes]
        folded = {node.id for node in kept if node.id not in running}
        return explain(self._name, shown, depths.entered, depths.stage_of, folded)

    def plan(self, *, shards: int | None = None) -> Plan:
        """What would run, checked as a whole. `shards` is for tests; by default as `execute` has it."""
        nodes = self._graph.nodes
        require_runnable(nodes, self._name)
        check_supported(nodes, "spark")
        wanted = self._shards if shards is None else _checked_shards(shards)
        return compile_plan(with_limit(nodes, self._limit_us), self._name, wanted or _cores())

    def settings(self) -> RunSettings:
        """How this job is to be run."""
        if self._checkpoint is None:
            raise BuildError(
                f"The job '{self._name}' has no checkpoint, so it could not continue after a failure;"
                f' write Environment("{self._name}", checkpoint="path/to/directory").'
            )
        return RunSettings(
            checkpoint=self._checkpoint,
            shards=self._shards,
            epochs=self._epochs,
            restart=self._restart,
            master=self._master,
            session=self._session,
            verbose=self._verbose,
        )

    def execute(self) -> Summary:
        """Run the job to its end: bounded input is exhausted, or it is stopped. Blocks; raises what it failed with.

        SIGINT and SIGTERM stop it behind the epoch at hand, a second one aborts it. On a terminal a line
        shows how far it is; the summary is printed to standard error and returned.
        """
        plan, settings = self._ready()
        from headrace._jobs.launch import run_job

        return run_job(plan, settings)

    def start(self) -> JobHandle:
        """Run the job in the background, in a thread of this process that ends with it."""
        plan, settings = self._ready()
        from headrace._jobs.launch import start_job

        return start_job(plan, settings)

    def _ready(self) -> tuple[Plan, RunSettings]:
        plan, settings = self.plan(), self.settings()
        for sentence in _doubts(self._graph):
            warnings.warn(sentence, UserWarning, stacklevel=3)
        return plan, settings


def _doubts(graph: Graph) -> list[str]:
    """What is probably not meant, though it can run."""
    doubts = []
    if unnamed := [node for node in graph.generated if _needs_uid(node)]:
        doubts.append(
            f"Steps without a uid: {_listed(unnamed)}. State and output are found by it; give them a"
            " uid= of their own, or a later change of the job may lose them."
        )
    if ends := dangling(graph.nodes):
        doubts.append(
            f"Steps that lead to no sink and are not run: {_listed(ends)}. Add sink_to(...) or remove"
            " them."
        )
    return doubts


def _needs_uid(node: Node) -> bool:
    kept = node.keyed and not isinstance(node, Repartition)
    return kept or isinstance(node, AssignTimestamps | ReadSource | WriteSink)


def _listed(nodes: list[Node] | tuple[Node, ...]) -> str:
    return ", ".join(f"{node.verb} '{node.uid}' ({node.where})" for node in nodes)


def _cores() -> int:
    return min(len(os.sched_getaffinity(0)), KEY_GROUPS)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise BuildError(f"A job's name is a printable text that is not empty, not {name!r}.")
    return name


def _checked_path(checkpoint: Any) -> Path:
    if not isinstance(checkpoint, str | os.PathLike) or not str(checkpoint):
        raise BuildError(f"checkpoint= takes the path of a directory, not {checkpoint!r}.")
    if "://" in str(checkpoint):
        raise BuildError(
            f"checkpoint={str(checkpoint)!r} is not a local path; checkpoints lie on a local disk for"
            ' now, for example checkpoint="state/job".'
        )
    return Path(checkpoint)


def _checked_shards(shards: Any) -> int:
    if isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= KEY_GROUPS:
        raise BuildError(f"shards= is a whole number from 1 to {KEY_GROUPS}, not {shards!r}.")
    return shards


def _checked_master(master: Any, session: Any) -> str | None:
    if master is None:
        return None
    if session is not None:
        raise BuildError("A session has its master already; pass master= or session=, not both.")
    if not isinstance(master, str) or not master.startswith("local"):
        raise BuildError(
            f"master={master!r} cannot be used: checkpoints lie on a local path for now, which needs a"
            ' local master, for example "local[2]".'
        )
    return master


def _instance(value: Any, kind: type, name: str) -> Any:
    if value is not None and not isinstance(value, kind):
        raise BuildError(f"{name}= takes a headrace.{kind.__name__}, not {value!r}.")
    return value
