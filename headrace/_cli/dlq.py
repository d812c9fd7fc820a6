"""`headrace dlq`: look at dead letters and send them back.

headrace dlq list dead/
headrace dlq show dead/ 3
headrace dlq replay dead/ --bootstrap localhost:9092 --only-cause "not JSON"
"""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    name="dlq", help="Dead letters: list them, show one, replay them.", no_args_is_help=True
)

_Place = Annotated[
    str, typer.Argument(help="A directory that errors were written to, or kafka://host:9092/topic")
]
_Options = Annotated[
    list[str] | None,
    typer.Option(help="name=value for the Kafka client; a value may be env:NAME or file:PATH"),
]
_State = Annotated[
    Path | None,
    typer.Option(
        help="The file that remembers what was replayed. (default: beside the directory, or in .headrace/dlq)"
    ),
]


@app.command("list")
def list_letters(place: _Place, option: _Options = None, state: _State = None) -> None:
    """Group letters by source and cause: how many, how many of them replayed, the newest, which."""
    from headrace._cli.letters import letters_at, parsed_options
    from headrace._cli.overview import print_groups
    from headrace._cli.replayed import Replayed, state_of

    letters = letters_at(place, parsed_options(option))
    print_groups(letters, Replayed.read(state or state_of(place)).sent)


@app.command()
def show(
    place: _Place,
    number: Annotated[int, typer.Argument(help="Its number in `list`, from 1.")],
    option: _Options = None,
    state: _State = None,
) -> None:
    """Print one letter: why it is there, where it came from, and what it was."""
    from headrace._cli.letters import letters_at, parsed_options
    from headrace._cli.overview import print_letter
    from headrace._cli.replayed import Replayed, state_of
    from headrace.errors import BuildError

    letters = letters_at(place, parsed_options(option))
    if not 1 <= number <= len(letters):
        raise BuildError(f"there is no letter {number} in {place}; there are {len(letters)}")
    sent = Replayed.read(state or state_of(place)).sent
    print_letter(letters[number - 1], len(letters), sent)


@app.command()
def replay(
    place: _Place,
    bootstrap: Annotated[
        str | None, typer.Option(help="The brokers. (default: those of a kafka:// place)")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Send there. (default: the topic that each came from)")
    ] = None,
    only_cause: Annotated[
        str | None, typer.Option(help="Only letters whose cause contains this text.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    option: _Options = None,
    state: _State = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what was replayed before.")] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--as-json", help="Also rows that failed in a step, as JSON, and lines of files."
        ),
    ] = False,
) -> None:
    """Send records back to their topic in one transaction; what was sent before is left out."""
    from headrace._cli import replay as replaying
    from headrace._cli.letters import letters_at, parsed_options
    from headrace._cli.overview import print_choice
    from headrace._cli.replayed import Replayed, memory_told, state_of

    options = parsed_options(option)
    letters = letters_at(place, options)
    file = (state or state_of(place)).absolute()
    was_known = file.exists()
    wish = replaying.Wish(only_cause, limit, again=again, as_json=as_json)
    if dry_run:
        choice = replaying.chosen(letters, Replayed.read(file).sent, wish)
    else:
        brokers = replaying.brokers_of(place, bootstrap)
        choice = replaying.replay(letters, file, brokers, options, topic, wish)
    print_choice(choice, topic, "would send" if dry_run else "sent")
    typer.echo(memory_told(file, was_known=was_known))
