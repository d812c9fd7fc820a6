"""What `headrace dlq` prints: groups of dead letters, one letter, what a replay did."""

import re
from collections.abc import Mapping, Sequence

import typer

from headrace._cli.letters import Letter
from headrace._cli.printing import hexdump, section, table
from headrace._cli.replay import Choice

__all__ = ["print_choice", "print_groups", "print_letter"]

_LONGEST_CAUSE = 100
_MOST_RANGES = 4


def print_groups(letters: Sequence[Letter], sent: Mapping[str, str]) -> None:
    """A line for each source and cause, the largest group first. `sent` says when which was replayed."""
    if not letters:
        typer.echo("no dead letters")
        return
    groups: dict[tuple[str, str], list[Letter]] = {}
    for letter in letters:
        groups.setdefault((letter.source or letter.uid or "?", _kind(letter)), []).append(letter)
    rows = [("COUNT", "REPLAYED", "NEWEST (UTC)", "SOURCE", "LETTERS", "CAUSE")]
    for (source, _), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        done = sum(letter.identity in sent for letter in group)
        newest = group[-1]
        when = newest.at.strftime("%Y-%m-%d %H:%M:%S")
        cause = _first_line(newest)[:_LONGEST_CAUSE]
        rows.append((str(len(group)), str(done), when, source, _ranges(group), cause))
    table(rows)


def print_letter(letter: Letter, count: int, sent: Mapping[str, str]) -> None:
    """Everything that is known about one of `count` letters."""
    table(
        [
            ("letter", f"{letter.number} of {count}: {letter.place}"),
            ("source", letter.source or "?"),
            ("step", letter.uid or "?"),
            ("origin", f"{letter.partition or '?'}, offset {letter.offset}"),
            ("replayed", sent.get(letter.identity, "no")),
        ]
    )
    section("cause", letter.cause or "?")
    if letter.traceback:
        section("traceback", letter.traceback)
    if letter.raw_key is not None:
        section("key", _shown(letter.raw_key))
    what = "record" if letter.is_record else "row"
    section(what, "nothing: a tombstone" if letter.value is None else _shown(letter.value))


def print_choice(choice: Choice, topic: str | None, verb: str) -> None:
    """What was sent where, and what was left out and why."""
    groups: dict[str, list[Letter]] = {}
    for letter in choice.send:
        own = "a topic that --topic must name" if letter.origin is None else letter.origin[0]
        groups.setdefault(topic or own, []).append(letter)
    for target, group in sorted(groups.items()):
        typer.echo(f"{verb} {len(group)} to {target}: letters {_ranges(group)}")
    if not choice.send:
        typer.echo("nothing to send")
    if choice.sent_before:
        typer.echo(f"{choice.sent_before} were replayed before; --again sends them, too")
    if choice.without_record:
        typer.echo(
            f"{choice.without_record} are rows that failed in a step or lines of files, without a record of"
            " Kafka that they came from; --as-json sends their text"
        )


def _kind(letter: Letter) -> str:
    """Causes that differ in numbers only are one."""
    return re.sub(r"\d+", "#", _first_line(letter))


def _first_line(letter: Letter) -> str:
    return (letter.cause or "?").strip().partition("\n")[0]


def _ranges(letters: Sequence[Letter]) -> str:
    """Numbers as people write them: 1-3, 7, 9-12, …"""
    runs: list[list[int]] = []
    for number in sorted(letter.number for letter in letters):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return ", ".join(texts[:_MOST_RANGES]) + (", …" if len(texts) > _MOST_RANGES else "")


def _shown(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return hexdump(content)
    plain = all(letter.isprintable() or letter in "\n\r\t" for letter in text)
    return text if plain and text else hexdump(content)
