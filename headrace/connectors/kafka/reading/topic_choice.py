"""Which topics a source reads: named ones, or all whose whole name matches a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.endpoints import Json
from headrace.errors import BuildError

__all__ = ["TopicChoice"]

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """Named topics, or a pattern."""

    names: tuple[str, ...] = ()
    pattern: str | None = None

    @classmethod
    def of(cls, topics: str | Sequence[str] | None, pattern: str | None) -> TopicChoice:
        """What the user said, or `BuildError`."""
        if (topics is None) == (pattern is None):
            raise BuildError("a Kafka source takes either topics= or pattern=")
        if pattern is not None:
            _check_pattern(pattern)
            return cls(pattern=pattern)
        names = [topics] if isinstance(topics, str) else list(topics or ())
        if not names or len(set(names)) != len(names):
            raise BuildError(f"topics must be one name or several different ones, not {topics!r}")
        for name in names:
            if not _NAME.fullmatch(str(name)):
                raise BuildError(
                    f"{name!r} is not the name of a topic; for several of them there is pattern="
                )
        return cls(tuple(sorted(names)))

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"pattern={self.pattern!r}"
        return f"topics={list(self.names)!r}"

    @property
    def only(self) -> str | None:
        """The topic, if it is just one."""
        return self.names[0] if len(self.names) == 1 else None

    def matching(self, existing: Iterable[str]) -> set[str]:
        """Those of the existing topics that are meant."""
        assert self.pattern is not None
        return {name for name in existing if re.fullmatch(self.pattern, name)}

    def signature(self) -> dict[str, Json]:
        """What must stay the same between two runs."""
        return {"topics": list(self.names), "pattern": self.pattern}


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise BuildError(f"pattern={pattern!r} is not a regular expression: {error}") from error
