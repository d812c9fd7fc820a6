"""`headrace dlq` over files, without a broker: what it lists, shows, would send and remembers."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from headrace._cli.letters import address_of, letters_at
from headrace._cli.main import app
from headrace._cli.printing import hexdump
from headrace._cli.replay import Choice, Wish, brokers_of, chosen
from headrace._cli.replayed import Replayed, state_of
from headrace._graph.nodes import ERRORS_SCHEMA
from headrace.errors import BuildError, InputError
from headrace.formats import format_named


def record(offset: int, **others: Any) -> dict[str, Any]:
    """A record of topic `my-orders`, partition 3, that could not be decoded."""
    letter = dict.fromkeys(ERRORS_SCHEMA.names) | {
        "uid": "orders",
        "cause": f"not JSON: column {offset}",
        "source": "orders",
        "partition": "my-orders-3",
        "offset": offset,
        "payload": "\ufffd{",
        "raw": b"\xff{",
        "raw_key": b"k\x00",
    }
    return letter | others


def row(offset: int, **others: Any) -> dict[str, Any]:
    """A row on which a step failed."""
    return (
        record(offset, uid="parse", cause="boom", payload='{"n": 1}', raw=None, raw_key=None)
        | others
    )


def written(directory: Path, letters: list[dict[str, Any]], form: str = "jsonl") -> Path:
    directory.mkdir(exist_ok=True)
    known = format_named(form)
    path = directory / f"part-{len(list(directory.iterdir()))}{known.suffix}"
    with path.open("wb") as file:
        writer = known.writer(file, ERRORS_SCHEMA)
        writer.write(pa.RecordBatch.from_pylist(letters, ERRORS_SCHEMA))
        writer.close()
    return directory


def run(*words: str | Path) -> str:
    done = CliRunner().invoke(app, ["dlq", *map(str, words)])
    if done.exception is not None:
        raise done.exception
    return done.output


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_letters_are_read_from_every_file_format(tmp_path: Path, form: str) -> None:
    place = written(tmp_path / "dead", [record(17), row(18, traceback='a\n"b"')], form)
    first, second = letters_at(str(place), {})
    assert (first.number, first.raw, first.raw_key) == (1, b"\xff{", b"k\x00")
    assert (first.origin, first.offset) == (("my-orders", 3), 17)
    assert (second.raw, second.value, second.traceback) == (None, b'{"n": 1}', 'a\n"b"')


def test_list_groups_causes_that_differ_in_numbers_only(tmp_path: Path) -> None:
    place = written(tmp_path / "dead", [record(1), row(2), record(3), record(4)])
    head, most, least = run("list", place).splitlines()
    assert head.split()[:2] == ["COUNT", "REPLAYED"]
    assert most.split()[:2] == ["3", "0"]
    assert "1, 3-4" in most
    assert most.endswith("not JSON: column 4")
    assert least.endswith("boom")


def test_show_prints_bytes_as_a_hexdump_and_text_as_text(tmp_path: Path) -> None:
    place = written(tmp_path / "dead", [record(17), row(18, traceback="Traceback:\n  here")])
    shown = run("show", place, "1")
    assert "my-orders-3, offset 17" in shown
    assert "00000000  ff 7b" in shown
    assert "not JSON: column 17" in shown
    shown = run("show", place, "2")
    assert '    {"n": 1}' in shown
    assert "      here" in shown
    with pytest.raises(BuildError, match=r"there is no letter 3 .*; there are 2"):
        run("show", place, "3")


def test_nothing_in_a_letter_reaches_the_terminal_as_a_command(tmp_path: Path) -> None:
    place = written(tmp_path / "dead", [record(1, cause="red \x1b[31m", raw=b"\x1b]0;title\x07")])
    assert "\x1b" not in run("list", place) + run("show", place, "1")


def test_record_is_sent_once_though_two_jobs_wrote_letters_about_it(tmp_path: Path) -> None:
    place = written(
        tmp_path / "dead", [record(1), record(1, uid="other", cause="too old"), record(2)]
    )
    choice = chosen(letters_at(str(place), {}), {}, Wish())
    assert [letter.number for letter in choice.send] == [1, 3]


def test_equal_rows_of_one_record_are_several(tmp_path: Path) -> None:
    place = written(tmp_path / "dead", [row(1), row(1)])
    letters = letters_at(str(place), {})
    assert [letter.number for letter in chosen(letters, {}, Wish(as_json=True)).send] == [1, 2]
    left = chosen(letters, {}, Wish())
    assert (left.send, left.without_record) == ((), 2)


def test_choice_honours_cause_limit_and_what_was_sent(tmp_path: Path) -> None:
    place = written(tmp_path / "dead", [record(n, cause=f"cause {n % 2}") for n in range(6)])
    letters = letters_at(str(place), {})
    sent = {letters[0].identity: "yesterday"}
    even = chosen(letters, sent, Wish(only_cause="cause 0", limit=1))
    assert ([letter.offset for letter in even.send], even.sent_before) == ([2], 1)
    again = chosen(letters, sent, Wish(only_cause="cause 0", again=True))
    assert ([letter.offset for letter in again.send], again.sent_before) == ([0, 2, 4], 0)


def test_letters_keep_their_identity_when_more_arrive(tmp_path: Path) -> None:
    place = written(tmp_path / "dead", [record(1), row(1)])
    before = [letter.identity for letter in letters_at(str(place), {})]
    written(place, [row(1), record(9)], "parquet")
    after = [letter.identity for letter in letters_at(str(place), {})]
    assert set(before) < set(after)
    assert len(set(after)) == 4


def test_dry_run_sends_nothing_and_needs_no_broker(tmp_path: Path) -> None:
    place = written(tmp_path / "dead", [record(1), row(2)])
    said = run("replay", place, "--dry-run")
    assert "would send 1 to my-orders: letters 1" in said
    assert "1 are rows that failed in a step or lines of files" in said
    assert not state_of(str(place)).exists()


def test_what_was_sent_is_remembered_and_damage_is_noticed(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    replayed = Replayed.read(state)
    replayed.begin("orders", ["a", "b"])
    assert Replayed.read(state).pending is not None
    replayed.settle(committed=True)
    replayed.begin("orders", ["c"])
    replayed.settle(committed=False)
    again = Replayed.read(state)
    assert (set(again.sent), again.number, again.name) == ({"a", "b"}, 2, replayed.name)
    assert again.pending is None
    state.write_text(state.read_text().replace('"a"', '"x"'))
    with pytest.raises(InputError, match="delete it if they may be sent again"):
        Replayed.read(state)


def test_mistakes_are_answered_with_what_to_do(tmp_path: Path) -> None:
    place = written(tmp_path / "dead", [record(1)])
    with pytest.raises(BuildError, match="--bootstrap host:9092"):
        run("replay", place)
    with pytest.raises(BuildError, match="kafka://host:9092/topic"):
        address_of("s3://bucket/dead")
    with pytest.raises(BuildError, match="there is no "):
        run("list", tmp_path / "nowhere")
    (place / "other.jsonl").write_text(json.dumps({"offset": "many"}) + "\n")
    with pytest.raises(InputError, match=r"other.jsonl, line 1 is not a dead letter"):
        run("list", place)
    (place / "other.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(InputError, match="it has no cause"):
        run("list", place)
    assert brokers_of("kafka://a:1,b:2/dead", None) == "a:1,b:2"


def test_hexdump_shows_place_bytes_and_letters() -> None:
    first, second = hexdump(b"0123456789abcdef\n").splitlines()
    assert first.startswith("00000000  30 31 32")
    assert first.endswith("  0123456789abcdef")
    assert second == f"00000010  {'0a':<47}  ."


def test_a_directory_without_letters_has_none(tmp_path: Path) -> None:
    (tmp_path / ".hidden").touch()
    assert run("list", tmp_path) == "no dead letters\n"
    (tmp_path / "notes.txt").touch()
    with pytest.raises(BuildError, match=r"no files that end with \.parquet"):
        letters_at(str(tmp_path), {})


def test_lines_of_files_are_sent_as_text_to_a_topic_that_is_named(tmp_path: Path) -> None:
    line = row(3, uid="in", partition="/orders/x.jsonl", payload='{"a":"x"}')
    dead = written(tmp_path / "dead", [line])
    assert "lines of files" in run("replay", dead, "--dry-run")
    unnamed = run("replay", dead, "--dry-run", "--as-json")
    assert unnamed.startswith("would send 1 to a topic that --topic must name: letters 1")
    named = run("replay", dead, "--dry-run", "--as-json", "--topic", "orders")
    assert named.startswith("would send 1 to orders: letters 1")


def test_every_replay_says_which_file_remembers_and_whether_it_knew_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another directory, or with the brokers written otherwise, all letters would be sent again in silence."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    letters = letters_at(str(written(tmp_path / "dead", [record(1)])), {})
    monkeypatch.setattr("headrace._cli.letters.letters_at", lambda *_: letters)
    place = "kafka://localhost:9092/orders-dead"
    file = tmp_path / "work/.headrace/dlq/localhost_9092-orders-dead.json"
    said = run("replay", place, "--dry-run")
    assert f"what is replayed is remembered in {file}\n" in said
    assert "nothing is known of earlier replays; --state names another one" in said
    known = Replayed.read(file)
    known.begin("my-orders", [letters[0].identity])
    known.settle(committed=True)
    said = run("replay", place, "--dry-run")
    assert f"what is replayed is remembered in {file}\n" in said
    assert "nothing is known" not in said
    other = run("replay", place, "--dry-run", "--state", "other.json")
    assert f"remembered in {Path.cwd() / 'other.json'}\nthere was no such file" in other
    assert "would send 1" in other


def test_a_real_replay_also_says_which_file_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = written(tmp_path / "dead", [record(1)])

    def sent(letters: list[Any], file: Path, *_: Any) -> Choice:
        Replayed.read(file).begin("my-orders", ["one"])
        return Choice(tuple(letters), 0, 0)

    monkeypatch.setattr("headrace._cli.replay.replay", sent)
    first = run("replay", place, "--bootstrap", "localhost:1")
    assert f"remembered in {tmp_path}/dead.replayed.json\nthere was no such file" in first
    second = run("replay", place, "--bootstrap", "localhost:1")
    assert f"remembered in {tmp_path}/dead.replayed.json" in second
    assert "nothing is known" not in second
