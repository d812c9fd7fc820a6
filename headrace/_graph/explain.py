"""A job as text: every step with its inputs and its place in the code, then the stages and shuffles.

job 'bids-per-auction': 2 stages, 1 shuffle

graph
  bids         source  BidSource, watermarks 0:00:04 behind 'date_time'    pipeline.py:6
  per-auction  window  tumbling 0:00:10 by auction, ...  <- bids           pipeline.py:11
  results      sink    FileSink  <- per-auction                            pipeline.py:17

stages
  0 reads      bids
     shuffle   per-auction by auction
  1 hosts      per-auction -> results
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta

from headrace._graph.join_nodes import JoinStep, KeepRow, LookupJoin
from headrace._graph.nodes import (
    MAIN,
    AssignTimestamps,
    FilterBy,
    KeyedProcess,
    Node,
    Port,
    ReadSource,
    Repartition,
    Select,
    Split,
    WindowStep,
    WriteSink,
)
from headrace.expressions import Expression
from headrace.watermarks import WatermarkStrategy

__all__ = ["explain"]


def explain(
    job: str,
    nodes: Sequence[Node],
    entered: Mapping[int, frozenset[int]],
    stage_of: Mapping[int, int],
    folded: Collection[int] = (),
) -> str:
    """The text. `entered` are the stages in which a step takes rows in, `stage_of` those of keyed steps.

    `folded` are steps whose work a later one does with its own.
    """
    stages = 1 + max(stage_of.values(), default=0)
    head = f"job '{job}': {_count(stages, 'stage')}, {_count(stages - 1, 'shuffle')}"
    graph = _aligned([_row(node, nodes, _remark(node, entered, folded)) for node in nodes])
    line = list(_stage_lines(nodes, entered, stage_of, stages))
    return "\n".join([head, "", "graph", *graph, "", "stages", *line])


def _row(node: Node, nodes: Sequence[Node], remark: str) -> tuple[str, ...]:
    taken = ", ".join(_port(port, nodes) for port in node.inputs)
    about = _about(node) + (f"  <- {taken}" if taken else "") + remark
    return node.uid, node.verb, node.where, about


def _remark(node: Node, entered: Collection[int], folded: Collection[int]) -> str:
    if node.id in folded:
        return "  (done by the step behind it)"
    return "" if node.id in entered else "  (reaches no sink: not run)"


def _about(node: Node) -> str:
    if isinstance(node, ReadSource):
        return f"{type(node.source).__name__}, {_event_time(node.strategy)}"
    if isinstance(node, AssignTimestamps):
        return _event_time(node.strategy)
    if isinstance(node, WriteSink):
        return type(node.sink).__name__
    if isinstance(node, Select):
        return ", ".join(f"{name} = {expression!r}" for name, expression in node.columns)
    if isinstance(node, FilterBy):
        return repr(node.condition)
    if isinstance(node, WindowStep):
        return _window(node)
    if isinstance(node, JoinStep | LookupJoin):
        how = "" if isinstance(node, KeepRow) else f"{node.how} "
        return f"{how}{node} {_by(node)}"
    if isinstance(node, Split):
        return ", ".join(f"{name} = {_code(condition)}" for name, condition in node.conditions)
    text = _function(node)
    return f"{text} {_by(node)}{_kept(node)}" if isinstance(node, KeyedProcess) else text


def _function(node: Node) -> str:
    function = getattr(node, "partitioner", None) or getattr(node, "function", None)
    return "" if function is None else _code(function)


def _code(code: object) -> str:
    if isinstance(code, Expression):
        return repr(code)
    return str(getattr(code, "__name__", type(code).__name__))


def _kept(node: KeyedProcess) -> str:
    """What a process function keeps, and whether rows wait."""
    states = ", ".join(f"{spec.name} ({spec.kind.replace('_', ' ')})" for spec in node.states)
    return (", in order of time" if node.ordered else "") + (f": {states}" if states else "")


def _event_time(strategy: WatermarkStrategy | None) -> str:
    if strategy is None:
        return "no event time"
    if strategy.kind == "ingestion":
        return "ingestion time"
    stamps = strategy.timestamps
    named = getattr(stamps, "__name__", None) or repr(stamps)
    if strategy.record_timestamps:
        named = "the records' own timestamps"
    text = f"{_watermarks(strategy)} {named}"
    if strategy.idleness_us is not None:
        text += f", idle after {timedelta(microseconds=strategy.idleness_us)}"
    if strategy.alignment is not None:
        drift = timedelta(microseconds=strategy.alignment.drift_us)
        text += f", within {drift} of group '{strategy.alignment.group}'"
    return text


def _watermarks(strategy: WatermarkStrategy) -> str:
    if strategy.kind == "generator":
        made = strategy.generator
        return f"watermarks by {getattr(made, '__name__', type(made).__name__)} from"
    if strategy.kind == "none":
        return "no watermarks, timestamps are"
    return f"watermarks {timedelta(microseconds=strategy.bound_us)} behind"


def _window(node: WindowStep) -> str:
    results = ", ".join(f"{name} = {aggregate}" for name, aggregate in node.aggregates)
    text = f"{node.window} {_by(node)}"
    if node.lateness_us:
        text += f", {timedelta(microseconds=node.lateness_us)} late at most"
    function = getattr(node, "function", None) or getattr(node, "batches", None)
    if function is not None:
        results += (
            f"{', ' if results else ''}{getattr(function, '__name__', type(function).__name__)}"
        )
    return f"{text}: {results}"


def _by(node: Node) -> str:
    if isinstance(node, KeyedProcess):
        return _by_inputs(node)
    if isinstance(node, JoinStep):
        return f"by {' and '.join(', '.join(keys) for keys in node.keys)}"
    keys = getattr(node, "keys", ())
    if isinstance(node, Repartition) and not keys:
        return "evenly" if node.function is None else f"by {_code(node.function)}"
    return f"by {', '.join(keys)}" if keys else "of all rows"


def _by_inputs(node: KeyedProcess) -> str:
    sides = [", ".join(keys) for keys in node.keys]
    if node.kind == "broadcast":
        return f"{f'by {sides[0]}' if sides[0] else 'dealt'}, beside all of the second"
    return f"by {' and '.join(sides)}" if sides[0] else "dealt"


def _stage_lines(
    nodes: Sequence[Node],
    entered: Mapping[int, frozenset[int]],
    stage_of: Mapping[int, int],
    stages: int,
) -> Iterator[str]:
    for stage in range(stages):
        hosted = [node for node in nodes if stage_of.get(node.id) == stage]
        if hosted:
            keys = [f"{node.uid} {_by(node)}" for node in hosted]
            yield f"     shuffle  {'; '.join(keys)}"
        first = hosted if stage else [n for n in nodes if not n.inputs and n.id in entered]
        names = [n.uid for n in first]
        after = [n for n in nodes if n.inputs and not n.keyed and stage in entered.get(n.id, ())]
        verb = "hosts" if stage else "reads"
        yield f"  {stage}  {verb}    {', '.join(names)}"
        if after:
            yield f"     then     {', '.join(n.uid for n in after)}"
        if feeding := [n for n in nodes if n.keyed and stage in entered.get(n.id, ())]:
            yield f"     feeds    {', '.join(n.uid for n in feeding)}"


def _port(port: Port, nodes: Sequence[Node]) -> str:
    uid = nodes[port.node].uid
    return uid if port.output == MAIN else f"{uid}.{port.output}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
