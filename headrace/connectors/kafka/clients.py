"""Kafka clients: their configuration, how they are opened, and what their errors mean in words.

Secrets are looked up here and nowhere else, so they exist only in the process that opens a client. Whatever the
library says about a configuration is freed of them before anybody reads it.

Addresses that begin with `memory://` are of logs in this process (`headrace.testing.Log`), which open their own clients.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Protocol
from weakref import WeakValueDictionary

from headrace.connectors.kafka.options import IN_MEMORY, OURS
from headrace.errors import SetupError
from headrace.secrets import hidden, looked_up_all

__all__ = [
    "LOGS",
    "REFUSED_S",
    "Complaints",
    "OpensClients",
    "client_config",
    "is_final",
    "library",
    "opened",
    "sentence",
]

LOG = logging.getLogger("headrace.kafka")

_DEFAULTS: dict[str, Any] = {
    "client.id": "headrace",
    # What it has to say comes to `Complaints`; on stderr it would be ten lines a second while a broker is away.
    "log_level": "2",
    # A broker that closes an idle connection is no event.
    "log.connection.close": "false",
    # A broker that comes back is found within a second, not after the library's ten.
    "reconnect.backoff.max.ms": "1000",
}

#: A broker that is being restarted may break off a handshake, which looks like one that refuses us: so long it is not
#: believed.
REFUSED_S = 5.0
#: Both connections of a client may be broken off by one broker that goes down.
_REPEATED = 3

#: Codes that no later attempt changes: somebody must act.
_FINAL = """_AUTHENTICATION _SSL _UNSUPPORTED_FEATURE _INVALID_ARG SASL_AUTHENTICATION_FAILED
    UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED
    CLUSTER_AUTHORIZATION_FAILED TRANSACTIONAL_ID_AUTHORIZATION_FAILED TOPIC_EXCEPTION""".split()


class OpensClients(Protocol):
    """A log in this process."""

    def open(self, kind: str, config: Mapping[str, Any]) -> Any:
        """A client of it that stands for this class of the library."""


#: The logs of this process by address, for as long as a test holds them.
LOGS: WeakValueDictionary[str, OpensClients] = WeakValueDictionary()


def library() -> ModuleType:
    """The client library, or `SetupError` with the command that installs it."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise SetupError("Kafka needs confluent-kafka: pip install 'headrace[kafka]'") from error
    return confluent_kafka


def client_config(bootstrap: str, options: Mapping[str, str]) -> dict[str, Any]:
    """What a client is opened with: our defaults, the user's options, secrets looked up."""
    passed = {name: value for name, value in options.items() if name not in OURS}
    return {**_DEFAULTS, "bootstrap.servers": bootstrap, **looked_up_all(_as_texts(passed))}


def opened(kind: str, config: Mapping[str, Any]) -> Any:
    """A client of this class of the library ("Consumer", "Producer", "admin.AdminClient")."""
    known = library()
    if config["bootstrap.servers"].startswith(IN_MEMORY):
        return _log_at(config["bootstrap.servers"]).open(kind, config)
    try:
        if kind == "admin.AdminClient":
            from confluent_kafka.admin import AdminClient

            return AdminClient(dict(config))
        return getattr(known, kind)(dict(config))
    except (known.KafkaException, TypeError, ValueError) as error:
        text = _without_secrets(sentence(error), config)
        raise SetupError(
            f"the Kafka client for {config['bootstrap.servers']} cannot be opened: {text}; see options="
        ) from None


def _log_at(address: str) -> OpensClients:
    log = LOGS.get(address)
    if log is None:
        raise SetupError(
            f"there is no log {address} in this process: keep the headrace.testing.Log while jobs use it"
        )
    return log


class Complaints:
    """What a client says on its own while it cannot reach a broker; hung in as its `error_cb`.

    The library tells a caller that it had no answer in time; why there is none, it tells here, but only when the
    caller lets it. What is heard at the end of a wait has no time of its own: it counts from when anything else was
    heard last, or `forget` was called. So whoever begins to wait forgets first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Any = None
        self._times = 0
        self._since_s = self._heard_s = time.monotonic()

    def __call__(self, error: Any) -> None:
        """Take note; called by the library."""
        with self._lock:
            if _is_vague(error):
                self._last = error if self._last is None else self._last
                return
            self._last, self._heard_s = error, time.monotonic()
            self._times += 1
            if not is_final(error):
                self._times, self._since_s = 0, self._heard_s

    def forget(self) -> None:
        """The brokers answer again, or are asked anew."""
        with self._lock:
            self._last, self._times = None, 0
            self._since_s = self._heard_s = time.monotonic()

    @property
    def final(self) -> str | None:
        """The newest complaint if somebody must act on it; how long it is so, the caller must see for itself."""
        with self._lock:
            return sentence(self._last) if self._times else None

    def refusal(self, within_s: float = REFUSED_S) -> str | None:
        """The newest complaint if somebody must act on it: so long it was repeated, and nothing else was heard."""
        with self._lock:
            lasting = self._heard_s - self._since_s >= within_s
            return sentence(self._last) if lasting and self._times >= _REPEATED else None

    def why(self, otherwise: object) -> str:
        """The reason behind an error; one that asking again cannot help is a broker's answer and its own reason."""
        with self._lock:
            told = self._last
        return sentence(otherwise if told is None or is_final(otherwise) else told)


def is_final(error: object) -> bool:
    """Whether asking again cannot help."""
    inner = _inner(error)
    return inner is not None and inner.name() in _FINAL


def sentence(error: object) -> str:
    """What went wrong, in the library's words without its codes."""
    inner = _inner(error)
    if inner is None:
        return str(error) or type(error).__name__
    said = inner.str()
    return f"{said} ({inner.name().lstrip('_')})"


def _is_vague(error: Any) -> bool:
    """Whether this only repeats what was said before: that all brokers are away, or why a handshake failed.

    The library now and then has a certificate that it does not trust as a failure of the connection; the words of
    the TLS library give it away.
    """
    if error.name() == "_TRANSPORT":
        return "SSL routines" in error.str()
    return bool(error.name() == "_ALL_BROKERS_DOWN")


def _inner(error: object) -> Any:
    """The library's own error in what it raised or gave."""
    known = library()
    if isinstance(error, known.KafkaException) and error.args:
        error = error.args[0]
    return error if isinstance(error, known.KafkaError) else None


def _as_texts(options: Mapping[str, object]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }


def _without_secrets(text: str, config: Mapping[str, Any]) -> str:
    texts = {name: value for name, value in config.items() if isinstance(value, str)}
    for name, shown in hidden(texts).items():
        if shown == "***" and texts[name]:
            text = text.replace(texts[name], "***")
    return text
