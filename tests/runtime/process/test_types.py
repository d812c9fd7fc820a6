"""State holds what Arrow can hold, gives back what the annotation promises, and nobody can change it behind our back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Annotated, Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import BuildError, UserCodeError
from headrace.testing import run_local


@dataclass
class Place:
    """Nested in another one."""

    city: str
    marks: list[int] = field(default_factory=list)


@dataclass
class Person:
    """With everything in it."""

    name: str
    home: Place
    visited: dict[str, Place] = field(default_factory=dict)
    born: date | None = None


class Temperature:
    """A class that Arrow knows nothing of."""

    def __init__(self, kelvin: float) -> None:
        self.kelvin = kelvin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Temperature) and self.kelvin == other.kelvin

    def __hash__(self) -> int:
        return hash(self.kelvin)


KELVIN = hr.state.Codec(storage=float, encode=attrgetter("kelvin"), decode=Temperature)

VALUES: list[tuple[Any, Any]] = [
    (int, -(2**63)),
    (float, float("inf")),
    (bool, False),
    (str, ""),
    (bytes, b"\x00\xff"),
    (datetime, datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)),
    (date, date(1970, 1, 1)),
    (time, time(23, 59, 59, 999_999)),
    (timedelta, timedelta(days=-1, microseconds=1)),
    (Decimal, Decimal("12345.678900000000000000")),
    (Annotated[int, pa.int16()], -5),
    (list[int], []),
    (list[list[str | None]], [["a", None], []]),
    (dict[str, list[int]], {"x": [1], "": []}),
    (Place, Place("Bern", [1, 2])),
    (Person, Person("A", Place("B"), {"x": Place("C", [3])}, date(2000, 1, 1))),
    (Annotated[Temperature, KELVIN], Temperature(273.15)),
]


def stored(annotation: Any, values: list[Any], *, epochs: int = 1) -> list[Any]:
    """What a function finds of each value in the row behind the one that put it there."""
    found: list[Any] = []

    class Keeps(hr.KeyedProcessFunction):
        kept: hr.state.Value[annotation] = hr.state.FOREVER  # type: ignore[valid-type]

        def process_element(self, value: Any, ctx: Any) -> Iterator[dict[str, int]]:
            found.append(self.kept.value())
            self.kept.update(values[value.number] if value.number < len(values) else None)
            yield {"number": value.number}

    Keeps.__annotations__["kept"] = hr.state.Value[annotation]
    env = hr.Environment("types")
    rows = [{"key": 1, "number": number} for number in range(len(values) + 1)]
    source = env.from_source(MemorySource(rows, schema={"key": int, "number": int}), uid="rows")
    kept = source.key_by("key").process(Keeps(), schema={"number": int}, uid="keeps")
    kept.sink_to(MemorySink(), uid="out")
    run_local(env, shards=2, epochs=hr.Epochs(rows=epochs))
    return found[1:]


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=[str(kind) for kind, _ in VALUES])
@pytest.mark.parametrize("epochs", [1, 100])
def test_a_value_comes_back_as_it_was(annotation: Any, value: Any, epochs: int) -> None:
    (again,) = stored(annotation, [value], epochs=epochs)
    assert again == value
    assert type(again) is type(value)


def test_an_int_where_floats_are_kept_is_a_float_in_the_same_epoch_too() -> None:
    for epochs in (1, 100):
        (again,) = stored(float, [3], epochs=epochs)
        assert (again, type(again)) == (3.0, float)


def test_what_is_changed_after_it_was_given_stays_as_it_was() -> None:
    class Mutates(hr.KeyedProcessFunction):
        kept: hr.state.Value[list[int]] = hr.state.FOREVER

        def process_element(self, value: Any, ctx: Any) -> Iterator[dict[str, list[int]]]:
            before = self.kept.value() or []
            yield {"seen": list(before)}
            before.append(-1)
            given = [value.number]
            self.kept.update(given)
            given.append(-2)

    for rows in (1, 100):
        env, out = hr.Environment("mutates"), MemorySink()
        numbers = [{"key": 1, "number": number} for number in range(3)]
        source = MemorySource(numbers, schema={"key": int, "number": int})
        stream = env.from_source(source, uid="rows").key_by("key")
        stream.process(Mutates(), schema={"seen": list[int]}, uid="m").sink_to(out, uid="out")
        run_local(env, shards=1, epochs=hr.Epochs(rows=rows))
        assert [row["seen"] for row in out.to_pylist()] == [[], [0], [1]]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "7"),
        (int, 2**63),
        (str, 7),
        (datetime, datetime(2026, 1, 1)),
        (Place, 3),
        (list[int], ["x"]),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused_where_it_is_given(annotation: Any, value: Any) -> None:
    with pytest.raises(UserCodeError, match="'kept' of step 'keeps'"):
        stored(annotation, [value])


def test_a_type_that_nobody_can_store_is_refused_when_the_step_is_built() -> None:
    with pytest.raises(BuildError, match=r"Keeps.kept: .*register_codec"):
        stored(Temperature, [])


def test_a_registered_codec_is_used_wherever_the_class_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headrace.state.codecs._registered", {})
    hr.state.register_codec(Temperature, KELVIN)
    assert stored(Temperature, [Temperature(1.5)]) == [Temperature(1.5)]
