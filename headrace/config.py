"""Settings of a job as frozen values: how epochs are cut, and when a failed run or call is tried again.

Every value is checked once, in the constructor, and raises `BuildError` on the user's line. Durations are
`timedelta` outside and integer microseconds inside. Deliberately absent: anything that reads a clock.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from math import inf

from headrace.errors import BuildError

__all__ = ["Epochs", "Restart", "Retry", "to_us"]

_MICROSECOND = timedelta(microseconds=1)


def to_us(duration: timedelta, name: str, *, positive: bool = True) -> int:
    """A duration in whole microseconds; `name` is what the error message calls it.

    >>> to_us(timedelta(seconds=2), "size")
    2000000
    """
    if not isinstance(duration, timedelta):
        raise BuildError(
            f"{name} must be a datetime.timedelta, not {duration!r}"
            f" ({type(duration).__name__}); write for example timedelta(seconds=10)."
        )
    us = duration // _MICROSECOND
    if us < 0:
        raise BuildError(f"{name} must not be negative, but it is {duration!r}.")
    if positive and us == 0:
        raise BuildError(f"{name} must be longer than zero.")
    return us


@dataclass(frozen=True, slots=True)
class Epochs:
    """How the input is cut into epochs, each of which is one checkpoint.

    Without settings the size follows the backlog: small epochs when the job has caught up, large ones up
    to `max_rows` and `max_bytes` when it is behind, of about `target` each: longer ones catch up faster, shorter ones
    let results out sooner. `rows` fixes the cuts instead: exactly so many rows a source and epoch, or one file of a
    source of files. `min_interval` keeps epochs apart in wall-clock time. While a sink is away, epochs wait to be shown;
    with `max_unpublished` of them, or so many bytes staged for them, nothing more is taken in until it is back.

    >>> Epochs(min_interval=timedelta(seconds=1)).min_interval_us
    1000000
    """

    rows: int | None = None
    min_interval: timedelta | None = None
    max_rows: int = 4_000_000
    max_bytes: int = 256 * 2**20
    target: timedelta = timedelta(seconds=1)
    max_unpublished: int = 16
    max_unpublished_bytes: int = 4 * 2**30

    def __post_init__(self) -> None:
        if self.rows is not None:
            _require_count(self.rows, "Epochs(rows=...)")
        _require_count(self.max_unpublished, "Epochs(max_unpublished=...)")
        _require_count(self.max_unpublished_bytes, "Epochs(max_unpublished_bytes=...)")
        _require_count(self.max_rows, "Epochs(max_rows=...)")
        _require_count(self.max_bytes, "Epochs(max_bytes=...)")
        if self.min_interval is not None:
            to_us(self.min_interval, "Epochs(min_interval=...)", positive=False)
        to_us(self.target, "Epochs(target=...)")

    @property
    def min_interval_us(self) -> int:
        """The least time between two epochs in microseconds; 0 when there is none."""
        return 0 if self.min_interval is None else self.min_interval // _MICROSECOND

    @property
    def target_us(self) -> int:
        """How long an epoch should take, in microseconds, while the job is behind."""
        return self.target // _MICROSECOND


@dataclass(frozen=True, slots=True)
class Restart:
    """When a failed run starts again from its last durable epoch. Made by one of the class methods.

    `attempts` and `user_failures` bound how often; None is without bound. Failures count from the last
    time the job ran for `reset_after` without one.
    """

    initial: timedelta
    maximum: timedelta
    factor: float
    reset_after: timedelta
    attempts: int | None
    user_failures: int | None

    @classmethod
    def exponential(
        cls,
        initial: timedelta = timedelta(seconds=1),
        maximum: timedelta = timedelta(minutes=1),
        *,
        factor: float = 2.0,
        reset_after: timedelta = timedelta(minutes=5),
        user_failures: int = 3,
    ) -> Restart:
        """Try for ever with growing pauses, but give up after `user_failures` errors of user code.

        >>> Restart.exponential().delay(3, 0)
        datetime.timedelta(seconds=4)
        """
        shortest_us = to_us(initial, "Restart.exponential(initial=...)")
        longest_us = to_us(maximum, "Restart.exponential(maximum=...)")
        to_us(reset_after, "Restart.exponential(reset_after=...)")
        _require_count(user_failures, "Restart.exponential(user_failures=...)", least=0)
        if longest_us < shortest_us:
            raise BuildError(
                f"maximum ({maximum!r}) must not be shorter than initial ({initial!r})."
            )
        if type(factor) not in (int, float) or not 1 <= factor < inf:
            raise BuildError(
                f"Restart.exponential(factor=...) must be a number of 1 or more, not {factor!r}."
            )
        return cls(initial, maximum, float(factor), reset_after, None, user_failures)

    @classmethod
    def fixed(cls, delay: timedelta, attempts: int) -> Restart:
        """Try again at most `attempts` times, with the same pause before each, whoever is at fault."""
        to_us(delay, "Restart.fixed(delay=...)", positive=False)
        _require_count(attempts, "Restart.fixed(attempts=...)")
        return cls(delay, delay, 1.0, timedelta.max, attempts, None)

    @classmethod
    def never(cls) -> Restart:
        """The first failure ends the job."""
        return cls(timedelta(0), timedelta(0), 1.0, timedelta.max, 0, 0)

    def delay(self, failures: int, user_failures: int) -> timedelta | None:
        """How long to wait after so many failures, `user_failures` of them of user code; None: give up.

        `failures` counts the one that has just happened, so it is at least 1.
        """
        if self.attempts is not None and failures > self.attempts:
            return None
        if self.user_failures is not None and user_failures > self.user_failures:
            return None
        # Beyond 64 doublings the maximum has long been reached; a float would overflow.
        grown = self.initial.total_seconds() * min(self.factor ** min(failures - 1, 64), 1e9)
        return min(timedelta(seconds=min(grown, self.maximum.total_seconds())), self.maximum)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a call that fails is made, and how long to wait in between.

    `attempts` are the calls in all, the first among them. The pause is `delay`, then `backoff` times as long after
    every attempt, up to `maximum`; `jitter=0.2` makes each up to a fifth shorter or longer, by chance. Only errors of
    the classes in `retry_on` are tried again; a time-out is a `TimeoutError`.

    >>> [Retry(attempts=5, delay=timedelta(seconds=1)).pause_s(made) for made in (1, 2, 3)]
    [1.0, 2.0, 4.0]
    """

    attempts: int = 3
    delay: timedelta = timedelta(milliseconds=100)
    _: KW_ONLY
    backoff: float = 2.0
    maximum: timedelta = timedelta(seconds=30)
    jitter: float = 0.0
    retry_on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        _require_count(self.attempts, "Retry(attempts=...)")
        shortest_us = to_us(self.delay, "Retry(delay=...)", positive=False)
        if to_us(self.maximum, "Retry(maximum=...)", positive=False) < shortest_us:
            raise BuildError(
                f"maximum ({self.maximum!r}) must not be shorter than delay ({self.delay!r})."
            )
        if type(self.backoff) not in (int, float) or not 1 <= self.backoff < inf:
            raise BuildError(
                f"Retry(backoff=...) must be a number of 1 or more, not {self.backoff!r}."
            )
        if type(self.jitter) not in (int, float) or not 0 <= self.jitter <= 1:
            raise BuildError(f"Retry(jitter=...) must be between 0 and 1, not {self.jitter!r}.")
        object.__setattr__(self, "retry_on", _exception_classes(self.retry_on))

    def allows(self, error: BaseException, made: int) -> bool:
        """Whether a call that has failed `made` times, lastly with this error, is made again."""
        return made < self.attempts and isinstance(error, self.retry_on)

    def pause_s(self, made: int, chance: float = 0.5) -> float:
        """Seconds to wait behind attempt number `made`; `chance`, from 0 to 1, is used up by the jitter."""
        grown = self.delay.total_seconds() * min(self.backoff ** min(made - 1, 64), 1e9)
        pause = min(grown, self.maximum.total_seconds())
        return pause * (1 + self.jitter * (2 * chance - 1))


def _exception_classes(given: object) -> tuple[type[Exception], ...]:
    classes = given if isinstance(given, tuple | list) else (given,)
    if not classes or not all(isinstance(c, type) and issubclass(c, Exception) for c in classes):
        raise BuildError(
            f"Retry(retry_on=...) takes classes of exceptions, such as (OSError, TimeoutError), not {given!r}."
        )
    return tuple(classes)


def _require_count(value: int, name: str, *, least: int = 1) -> None:
    if type(value) is not int:
        raise BuildError(f"{name} must be a whole number, not {value!r} ({type(value).__name__}).")
    if value < least:
        raise BuildError(f"{name} must be {least} or more, not {value}.")
