"""Sources and sinks, one package each; a program imports the ones that it uses.

Here are the classes for those who write their own. They are imported when they are first used, and so is a package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.connectors.polled import PolledSource
    from headrace.connectors.twophase import SpooledSink, TwoPhaseSink
    from headrace.endpoints import DeadLetter, Enumerator, SinkContext, Source, SourceBatch, Span

__all__ = [
    "DeadLetter",
    "Enumerator",
    "PolledSource",
    "SinkContext",
    "Source",
    "SourceBatch",
    "Span",
    "SpooledSink",
    "TwoPhaseSink",
]

_HOMES = {
    "connectors.polled": "PolledSource",
    "connectors.twophase": "SpooledSink TwoPhaseSink",
    "endpoints": "DeadLetter Enumerator SinkContext Source SourceBatch Span",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_PACKAGES = frozenset("console databases files generator kafka memory".split())


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"headrace.connectors.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'headrace.connectors' has no attribute {name!r}")
    value = getattr(import_module(f"headrace.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
