"""Asking a schema registry: one client per registry and process, every schema fetched once.

What the registry says is told in Headrace's errors: it is away (`EngineError` or `SinkError`, which are tried again; `SetupError` before a job runs), it
does not know an id or a subject (`UnknownSchema`), it refuses a schema (`SinkRefused`). No message shows a password.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any

from headrace.errors import EngineError, HeadraceError, SetupError, SinkError, SinkRefused
from headrace.formats.messages.registry.registry import Registry
from headrace.secrets import looked_up_all

__all__ = ["RegisteredSchema", "RegistryClient", "UnknownSchema", "client_of"]

_NUMBERS = frozenset(
    "timeout max.retries retries.wait.ms retries.max.wait.ms cache.capacity cache.latest.ttl.sec".split()
)
#: What the registry's own 404 says: no such subject, version or schema. Another one is of a proxy or a wrong URL.
_UNKNOWN = frozenset((40401, 40402, 40403))
_clients: dict[Registry, "RegistryClient"] = {}
_lock = threading.Lock()


class UnknownSchema(LookupError):
    """The registry has no schema of this id or subject."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as the registry holds it; `named` are the texts of those that it refers to, inner ones first."""

    id: int
    kind: str
    text: str
    named: tuple[str, ...] = ()
    #: How it calls them.
    names: tuple[str, ...] = ()
    version: int | None = None


def client_of(registry: Registry) -> "RegistryClient":
    """The client of this process."""
    with _lock:
        if registry not in _clients:
            _clients[registry] = RegistryClient(registry)
        return _clients[registry]


class RegistryClient:
    """What formats ask a registry for."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._client = _opened(registry)
        self._schemas: dict[int, RegisteredSchema] = {}
        self._ids: dict[tuple[str, str, str], int] = {}

    @property
    def url(self) -> str:
        """Where it is, for messages."""
        return self._registry.shown_url

    def schema(self, number: int) -> RegisteredSchema:
        """The schema of an id, which never changes."""
        if number not in self._schemas:
            with self._asking(f"schema id {number}", EngineError):
                found = self._client.get_schema(number)
                self._schemas[number] = self._registered(number, found, None)
        return self._schemas[number]

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject."""
        with self._asking(f"subject {subject!r}", SetupError):
            found = self._client.get_latest_version(subject)
            return self._registered(found.schema_id, found.schema, found.version)

    def versions(self, subject: str) -> list[RegisteredSchema]:
        """All schemas of a subject, the oldest first."""
        with self._asking(f"subject {subject!r}", EngineError):
            numbers = sorted(self._client.get_versions(subject))
            found = [self._client.get_version(subject, number) for number in numbers]
            return [self._registered(each.schema_id, each.schema, each.version) for each in found]

    def subjects(self, number: int) -> list[str]:
        """The subjects that an id is registered under."""
        with self._asking(f"schema id {number}", EngineError):
            return sorted({each.subject for each in self._client.get_schema_versions(number)})

    def register(
        self,
        subject: str,
        kind: str,
        text: str,
        named: Sequence[str] = (),
        changes: Callable[[RegisteredSchema], str] = lambda _: "",
    ) -> int:
        """The id of a schema under a subject, registered if it is new; `named` are subjects that it refers to.

        `changes` tells how it differs from the one that it was refused for.
        """
        key = (subject, kind, text)
        if key not in self._ids:
            try:
                self._ids[key] = self._registered_id(subject, kind, text, named)
            except SinkRefused as error:
                raise SinkRefused(f"{error}{self._compared(subject, changes)}") from None
        return self._ids[key]

    def _registered_id(self, subject: str, kind: str, text: str, named: Sequence[str]) -> int:
        from confluent_kafka.schema_registry import Schema, SchemaReference

        with self._asking(f"subject {subject!r}", SinkError):
            latest = [(name, self._client.get_latest_version(name).version) for name in named]
            references = [SchemaReference(name, name, version) for name, version in latest]
            number: int = self._client.register_schema(subject, Schema(text, kind, references))
            return number

    def _compared(self, subject: str, changes: Callable[[RegisteredSchema], str]) -> str:
        """What a refused schema was compared with; nothing if that cannot be learned, the refusal says enough."""
        try:
            latest = self.latest(subject)
        except HeadraceError:
            return ""
        return (
            f". Latest is version {latest.version} (id {latest.id}){changes(latest)}."
            " Change the columns, or write to another subject."
        )

    def _registered(self, number: int, schema: Any, version: int | None) -> RegisteredSchema:
        references = list(self._references(schema, set()))
        return RegisteredSchema(
            number,
            schema.schema_type,
            schema.schema_str,
            tuple(text for _, text in references),
            tuple(name for name, _ in references),
            version,
        )

    def _references(self, schema: Any, seen: set[tuple[str, int]]) -> Iterator[tuple[str, str]]:
        for reference in schema.references or ():
            key = (reference.subject, reference.version)
            if key not in seen:
                seen.add(key)
                inner = self._client.get_version(*key).schema
                yield from self._references(inner, seen)
                yield reference.name, inner.schema_str

    @contextmanager
    def _asking(self, what: str, away: Callable[[str], HeadraceError]) -> Iterator[None]:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            yield
        except SchemaRegistryError as error:
            raise self._told(error, what, away) from None
        except JSONDecodeError:
            raise away(
                f"the schema registry {self.url} did not answer with JSON: is that its URL?"
            ) from None
        except Exception as error:
            # The client lets errors of its HTTP library through, under whatever name that has in its release.
            if not type(error).__module__.startswith("httpx"):
                raise
            raise away(
                f"the schema registry {self.url} cannot be reached: {str(error) or type(error).__name__}"
            ) from None

    def _told(self, error: Any, what: str, away: Callable[[str], HeadraceError]) -> Exception:
        status, said = error.http_status_code, error.error_message
        if error.error_code in _UNKNOWN:
            return UnknownSchema(f"{what} is not known to the schema registry {self.url}")
        if status in (401, 403):
            return SetupError(
                f"the schema registry {self.url} refuses the login ({status}); see basic.auth.user.info"
            )
        if status in (409, 422) and away is SinkError:
            return SinkRefused(
                f"the schema registry {self.url} refuses the schema for {what}: {said}"
            )
        hint = " (is that its URL?)" if status == 404 else ""
        return away(f"the schema registry {self.url}{hint} failed with status {status}: {said}")


def _opened(registry: Registry) -> Any:
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError as error:
        raise SetupError(
            "a schema registry needs confluent-kafka: pip install 'headrace[kafka]'"
        ) from error
    options: dict[str, Any] = dict(looked_up_all(registry.options))
    try:
        for name in _NUMBERS & options.keys():
            options[name] = float(options[name]) if name == "timeout" else int(options[name])
        return SchemaRegistryClient({"url": registry.url, "timeout": 10, **options})
    except (ValueError, TypeError, OSError) as error:
        said = str(error).replace(registry.url, registry.shown_url)
        raise SetupError(f"the options of {registry!r} cannot be used: {said}") from None
