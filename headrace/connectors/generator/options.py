"""The checks that the options of every generator share."""

from datetime import datetime, timedelta

from headrace.errors import BuildError

__all__ = ["check_at_least", "check_instant", "check_rate_limit", "check_share", "check_span"]


def check_at_least(name: str, value: object, least: int) -> None:
    """Raise unless the option is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BuildError(f"{name} must be a whole number of at least {least}, not {value!r}")


def check_rate_limit(value: object) -> None:
    """Raise unless the option is absent or a positive number of rows per second."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise BuildError(f"rate_limit must be a positive number of rows per second, not {value!r}")


def check_span(name: str, value: object) -> None:
    """Raise unless the option is a duration of zero or more."""
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise BuildError(f"{name} must be a timedelta of zero or more, not {value!r}")


def check_share(name: str, value: object) -> None:
    """Raise unless the option is a number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise BuildError(f"{name} must be a share between 0 and 1, not {value!r}")


def check_instant(name: str, value: object) -> None:
    """Raise unless the option is a datetime with a time zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise BuildError(f"{name} must be a datetime with a time zone, not {value!r}")
