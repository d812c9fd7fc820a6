"""The options that go through to the client library, and those that are ours to set."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from headrace.errors import BuildError

__all__ = ["CLEARTEXT", "IN_MEMORY", "OURS", "check_bootstrap", "check_options"]

#: How the address of a log in this process begins.
IN_MEMORY = "memory://"

#: Says that passwords may cross a network in the clear.
CLEARTEXT = "headrace.allow.cleartext.passwords"
#: Options that the client library never sees.
OURS = frozenset({CLEARTEXT})

_ADDRESS = {
    "bootstrap.servers": "the address is the first argument",
    "metadata.broker.list": "the address is the first argument",
}


def check_bootstrap(bootstrap: object) -> str:
    """The broker addresses, or `BuildError`."""
    if not isinstance(bootstrap, str) or not bootstrap.strip():
        raise BuildError(f'the brokers are a text such as "host:9092", not {bootstrap!r}')
    if "://" in bootstrap and not bootstrap.startswith(IN_MEMORY):
        raise BuildError(
            f"brokers are host:port without a scheme, unlike {bootstrap!r}; the protocol is"
            ' options={"security.protocol": ...}'
        )
    return bootstrap


def check_options(
    bootstrap: str, options: Mapping[str, str] | None, owned: Mapping[str, str]
) -> dict[str, str]:
    """The options, or `BuildError`: `owned` names those that are ours and says what to use instead."""
    given = dict(options or {})
    for name, instead in {**_ADDRESS, **owned}.items():
        if name in given:
            raise BuildError(f"options cannot have {name!r}: {instead}")
    for name, value in given.items():
        if not isinstance(value, str | int | float):
            raise BuildError(
                f"options have texts and numbers; {name!r} is a {type(value).__name__}"
            )
        if name.startswith("headrace.") and name not in OURS:
            raise BuildError(f"options have no {name!r}; of ours there is {', '.join(OURS)}")
    _check_cleartext(bootstrap, given)
    return given


def _check_cleartext(bootstrap: str, options: Mapping[str, str]) -> None:
    """A password that is sent as it is needs a wire that nobody else reads."""
    protocol = str(options.get("security.protocol", "plaintext")).lower()
    mechanism = options.get("sasl.mechanism", options.get("sasl.mechanisms", "GSSAPI"))
    if protocol != "sasl_plaintext" or str(mechanism).upper() != "PLAIN":
        return
    if str(options.get(CLEARTEXT, "")).lower() == "true":
        return
    away = [host for host in _hosts(bootstrap) if not _is_loopback(host)]
    if away:
        raise BuildError(
            f"SASL PLAIN over SASL_PLAINTEXT sends the password in the clear to {', '.join(away)}; use"
            f' "security.protocol": "SASL_SSL" or a SCRAM mechanism, or set {CLEARTEXT!r}: "true"'
        )


def _hosts(bootstrap: str) -> list[str]:
    return [part.strip().rpartition(":")[0].strip("[]") or part for part in bootstrap.split(",")]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
