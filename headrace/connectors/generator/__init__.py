"""Sources that make their rows: the Nexmark auction house, or a function of yours."""

from headrace.connectors.generator.function import Function
from headrace.connectors.generator.source import Nexmark

__all__ = ["Function", "Nexmark"]
