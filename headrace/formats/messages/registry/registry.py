"""A schema registry that speaks Confluent's API, as a value that travels: where it is, and how to get in.

Options are those of confluent-kafka's client (`basic.auth.user.info`, `ssl.ca.location`, `timeout` …). Secrets are
given by reference and looked up in the process that opens the client.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.errors import BuildError
from headrace.secrets import hidden, without_password

__all__ = ["Registry", "subject_of"]

#: Options with secrets whose names do not say so.
_SECRET = "basic.auth.user.info"  # noqa: S105 - a name


@dataclass(frozen=True, init=False, repr=False)
class Registry:
    """Where schemas are registered.

    >>> Registry("http://localhost:8081", options={"basic.auth.user.info": "env:REGISTRY_LOGIN"})
    Registry('http://localhost:8081', options={'basic.auth.user.info': 'env:REGISTRY_LOGIN'})
    """

    url: str
    _options: tuple[tuple[str, str], ...]

    def __init__(self, url: str, options: Mapping[str, object] | None = None) -> None:
        if "://" not in url:
            raise BuildError(f"Registry({url!r}): the URL must look like http://host:8081")
        pairs = tuple(sorted((name, str(value)) for name, value in (options or {}).items()))
        object.__setattr__(self, "url", url.rstrip("/"))
        object.__setattr__(self, "_options", pairs)

    @property
    def options(self) -> dict[str, str]:
        """The client's options as they were given."""
        return dict(self._options)

    @property
    def shown_url(self) -> str:
        """The URL for everything that people read."""
        return without_password(self.url)

    def __repr__(self) -> str:
        shown = hidden(self.options)
        if not shown.get(_SECRET, "env:").startswith(("env:", "file:")):
            shown[_SECRET] = "***"
        options = f", options={shown}" if shown else ""
        return f"Registry({self.shown_url!r}{options})"


def subject_of(topic: str, *, key: bool) -> str:
    """The subject that Confluent's clients use for the keys or the values of a topic."""
    return f"{topic}-{'key' if key else 'value'}"
