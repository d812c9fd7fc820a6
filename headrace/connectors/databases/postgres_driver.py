"""psycopg, imported where it is used, and what every connection of ours is opened with."""

from typing import Any

from headrace.connectors.databases.access import Access, missing_driver

__all__ = ["connection_settings", "driver"]

#: A peer that went away without a word is noticed in about a minute, by us and by the server.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    # Keepalives rest while something is on its way, such as the rows of a COPY.
    "tcp_user_timeout": 60_000,
    "client_encoding": "utf8",
}


def driver() -> Any:
    """The package, or what to install."""
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError as error:
        raise missing_driver("psycopg", "postgres") from error
    return psycopg


def connection_settings(access: Access, purpose: str) -> dict[str, Any]:
    """The arguments of `connect`, with the secrets in them; what the user says comes before what we say."""
    dsn, options = access.resolved()
    given = driver().conninfo.conninfo_to_dict(dsn, **options)
    return {**_DEFAULTS, "application_name": f"headrace {purpose}"[:63], **given}
