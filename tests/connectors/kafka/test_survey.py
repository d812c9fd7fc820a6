"""What a source knows of its partitions, and what it keeps: with a cluster that is a dictionary."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace._epochs.offset import INITIAL, Offset
from headrace._epochs.planner import _check
from headrace.connectors.kafka.reading.birth import Birth, Births
from headrace.connectors.kafka.reading.cluster import Gone, Topic
from headrace.connectors.kafka.reading.positions import millis
from headrace.connectors.kafka.reading.survey import Survey, Watched
from headrace.connectors.kafka.reading.topic_choice import TopicChoice
from headrace.endpoints import Span
from headrace.errors import CheckpointDamaged, InputError

Key = tuple[str, int]


@dataclass
class Cluster:
    """Partitions with (first, last) and the ids of topics."""

    partitions: dict[Key, tuple[int, int]]
    ids: dict[str, str] = field(default_factory=dict)
    at_offsets: dict[Key, int] = field(default_factory=dict)

    def names(self) -> list[str]:
        return sorted({topic for topic, _ in self.partitions})

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        return {
            name: Topic(
                name,
                self.ids.get(name, f"id of {name}"),
                tuple(n for topic, n in self.partitions if topic == name),
            )
            for name in names
            if name in self.names()
        }

    def firsts(self, keys: Iterable[Key]) -> dict[Key, int]:
        return {key: self.partitions[key][0] for key in keys}

    def lasts(self, keys: Iterable[Key]) -> dict[Key, int]:
        return {key: self.partitions[key][1] for key in keys}

    def at(self, keys: Iterable[Key], moment_ms: int) -> dict[Key, int]:
        return {key: self.at_offsets.get(key, -1) for key in keys}


def begun(cluster: Cluster, directory: Path, **watched: Any) -> Survey:
    options = {"choice": TopicChoice(("t",)), "start": "earliest", "stop": None, "on_loss": "fail"}
    survey = Survey(cluster, Watched(**{**options, **watched}), directory)  # type: ignore[arg-type]
    survey.begin()
    return survey


def test_births_are_kept_over_a_restart(tmp_path: Path) -> None:
    cluster = Cluster({("t", 0): (3, 10)})
    assert begun(cluster, tmp_path, start="latest").spans() == {
        "t-0": Span(3, 10, begin=10, firm=True)
    }
    cluster.partitions[("t", 0)] = (5, 20)
    assert begun(cluster, tmp_path, start="latest").spans()["t-0"].begin == 10


def test_a_damaged_birth_is_refused_with_its_file(tmp_path: Path) -> None:
    begun(Cluster({("t", 0): (3, 10)}), tmp_path)
    path = tmp_path / "birth.json"
    path.write_text(path.read_text().replace('"begin":3', '"begin":4'))
    with pytest.raises(CheckpointDamaged, match=r"birth\.json"):
        begun(Cluster({("t", 0): (3, 10)}), tmp_path)


def test_a_start_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"0 to 2, where start= begins, are gone"):
        begun(Cluster({("t", 0): (3, 10)}), tmp_path, start={("t", 0): 0})
    assert Births.read(tmp_path) is None
    lossy = begun(Cluster({("t", 0): (3, 10)}), tmp_path, start={("t", 0): 0}, on_loss="skip")
    assert lossy.spans()["t-0"] == Span(0, 10, begin=3, firm=True)


def test_growth_is_durable_before_it_is_told(tmp_path: Path) -> None:
    cluster = Cluster({("t", 0): (0, 1)})
    survey = begun(cluster, tmp_path, start="latest")
    cluster.partitions[("t", 1)] = (2, 7)
    survey.look_ahead()
    assert list(survey.spans()) == ["t-0"]
    survey.grow()
    assert survey.spans()["t-1"] == Span(2, 7, begin=2, firm=True)
    kept = Births.read(tmp_path)
    assert kept is not None
    assert kept.partitions[("t", 1)] == Birth(2)


def test_a_bounded_source_does_not_grow(tmp_path: Path) -> None:
    cluster = Cluster({("t", 0): (0, 4)})
    survey = begun(cluster, tmp_path, stop="latest")
    cluster.partitions |= {("t", 0): (0, 9), ("t", 1): (0, 5)}
    survey.grow()
    survey.look_ahead()
    assert survey.spans() == {"t-0": Span(0, 4, finished=True, begin=0, firm=True)}


def test_retention_behind_a_stop_is_no_loss(tmp_path: Path) -> None:
    cluster = Cluster({("t", 0): (0, 4)})
    begun(cluster, tmp_path, stop="latest")
    cluster.partitions[("t", 0)] = (8, 20)
    span = begun(cluster, tmp_path, stop="latest").spans()["t-0"]
    assert (span.first, span.end, span.finished) == (4, 4, True)


def test_a_start_behind_the_stop_is_empty_and_finished(tmp_path: Path) -> None:
    cluster = Cluster({("t", 0): (0, 9)})
    span = begun(cluster, tmp_path, start={("t", 0): 6}, stop={("t", 0): 2}).spans()["t-0"]
    assert (span.start, span.end, span.finished) == (6, 6, True)


def test_another_stop_counts_from_the_next_start_on(tmp_path: Path) -> None:
    cluster = Cluster({("t", 0): (0, 9)})
    begun(cluster, tmp_path, stop={("t", 0): 3})
    assert begun(cluster, tmp_path, stop={("t", 0): 5}).spans()["t-0"].end == 5
    assert begun(cluster, tmp_path).spans()["t-0"] == Span(0, 9, begin=0, firm=True)


def test_partitions_that_are_there_when_another_stop_is_told_are_read_to_it(tmp_path: Path) -> None:
    cluster = Cluster({("t", 0): (0, 9)})
    begun(cluster, tmp_path)
    cluster.partitions[("t", 1)] = (2, 7)
    spans = begun(cluster, tmp_path, stop="latest").spans()
    assert spans["t-1"] == Span(2, 7, finished=True, begin=2, firm=True)
    cluster.partitions |= {("t", 1): (2, 8), ("t", 2): (0, 5)}
    assert begun(cluster, tmp_path, stop="latest").spans() == spans


def test_times_become_offsets_once(tmp_path: Path) -> None:
    cluster = Cluster({("t", 0): (0, 9), ("t", 1): (0, 5)}, at_offsets={("t", 0): 4})
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    spans = begun(cluster, tmp_path, start=noon).spans()
    assert [span.begin for span in spans.values()] == [4, 5]
    assert millis(noon + timedelta(microseconds=1)) == millis(noon) + 1


def test_another_topic_of_the_name_is_told_before_its_offsets_are(tmp_path: Path) -> None:
    cluster = Cluster({("t", 0): (0, 9)})
    survey = begun(cluster, tmp_path)
    cluster.ids["t"], cluster.partitions[("t", 0)] = "another", (0, 2)
    with pytest.raises(InputError, match=r"'t' was deleted and created again .*new checkpoint"):
        survey.look_ahead()
    with pytest.raises(InputError, match="deleted and created again"):
        begun(cluster, tmp_path)


def test_an_end_that_falls_back_for_a_moment_is_no_loss(tmp_path: Path) -> None:
    now = [0.0]
    cluster = Cluster({("t", 0): (0, 9)})
    watched = Watched(choice=TopicChoice(("t",)), start="earliest", stop=None, on_loss="fail")
    survey = Survey(cluster, watched, tmp_path, lambda: now[0])  # type: ignore[arg-type]
    survey.begin()
    ends = []
    for moment, last in ((1, 7), (20, 8), (21, 10), (30, 6), (59, 6), (61, 6)):
        now[0], cluster.partitions[("t", 0)] = moment, (0, last)
        survey.look_ahead()
        ends.append(survey.spans()["t-0"].end)
    assert ends == [9, 9, 10, 10, 10, 6]


def test_a_topic_that_is_not_there_is_gone(tmp_path: Path) -> None:
    with pytest.raises(Gone):
        begun(Cluster({("u", 0): (0, 1)}), tmp_path)
    cluster = Cluster({("t", 0): (0, 1)})
    survey = begun(cluster, tmp_path)
    cluster.partitions = {("u", 0): (0, 1)}
    with pytest.raises(Gone):
        survey.recognise()


def test_a_pattern_matches_whole_names(tmp_path: Path) -> None:
    cluster = Cluster({("t1", 0): (0, 1), ("t1x", 0): (0, 1), ("xt1", 0): (0, 1)})
    survey = begun(cluster, tmp_path, choice=TopicChoice(pattern=r"t\d"))
    assert list(survey.spans()) == ["t1-0"]
    with pytest.raises(InputError, match="no topic matches pattern='z'"):
        begun(cluster, tmp_path / "z", choice=TopicChoice(pattern="z"), stop="latest")


def test_the_planner_refuses_a_gap_unless_it_may_be_skipped(tmp_path: Path) -> None:
    read_to_2 = Offset(0, {"in": {"t-0": (0, 2)}}, {}, {}, 0)
    cluster = Cluster({("t", 0): (5, 9)})
    with pytest.raises(InputError, match="positions 2 to 4 were not read yet and are gone"):
        _check(read_to_2, {"in": begun(cluster, tmp_path / "fail").spans()})
    _check(read_to_2, {"in": begun(cluster, tmp_path / "skip", on_loss="skip").spans()})
    _check(INITIAL, {"in": begun(cluster, tmp_path / "new").spans()})
