"""The command `headrace`: one word a subject, each in a file of its own."""

import sys
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from headrace._cli import dev, dlq
from headrace.errors import HeadraceError

__all__ = ["app", "main"]

app = typer.Typer(
    name="headrace",
    help="Headrace from the command line.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


app.add_typer(dev.app)
app.add_typer(dlq.app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headrace {version('headrace')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Headrace from the command line."""


def main() -> None:
    """The entry point. What Headrace raises on purpose says what to do, so it is shown without a traceback."""
    try:
        app()
    except HeadraceError as error:
        _end(str(error))
    except (
        OSError
    ) as error:  # a file or a program that is not there or not ours says enough by its name
        _end(": ".join(map(str, filter(None, (error.filename, error.strerror)))) or repr(error))


def _end(said: str) -> NoReturn:
    typer.echo(f"headrace: {said}", err=True)
    sys.exit(1)
