"""`headrace dev`: real local servers for development, in a directory of the project.

    eval "$(headrace dev up kafka postgres)"
    headrace dev up kafka postgres --run "python examples/revenue_per_minute.py"

What people read goes to standard error, lines for a shell to standard output.
"""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from headrace._cli.printing import table
from headrace.errors import BuildError

__all__ = ["app"]

app = typer.Typer(
    name="dev", help="Real local servers: kafka, postgres, registry, mariadb.", no_args_is_help=True
)

_Directory = Annotated[
    Path | None, typer.Option("--directory", "-d", help="Where they live. (default: .headrace/dev)")
]


@app.command()
def up(
    names: Annotated[list[str], typer.Argument(help="kafka, postgres, registry, mariadb")],
    directory: _Directory = None,
    run: Annotated[
        str | None,
        typer.Option("--run", help="Then run this command, which finds them by its environment."),
    ] = None,
) -> None:
    """Start servers that go on running; those that run already are left alone."""
    from headrace._services.project import Project

    command = None if run is None else _words(run)
    project = Project(_place(directory))
    fresh = project.up(names)
    servers = [server for server in project.running() if server.name in fresh]
    rows = [
        (server.name, "started" if fresh[server.name] else "already running", server.address)
        for server in servers
    ]
    table(rows, err=True)
    variables = {name: value for each in servers for name, value in each.variables.items()}
    if command is None:
        for name, value in variables.items():
            typer.echo(f"export {name}={shlex.quote(value)}")
        return
    done = subprocess.run(command, env={**os.environ, **variables}, check=False)
    raise typer.Exit(done.returncode)


@app.command()
def down(
    names: Annotated[list[str] | None, typer.Argument(help="Which. (default: all)")] = None,
    directory: _Directory = None,
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Delete what they held, too.")] = False,
) -> None:
    """End servers that `up` started here, and no others."""
    from headrace._services.project import Project

    ended = Project(_place(directory)).down(names or (), remove=remove)
    typer.echo(f"ended: {', '.join(ended)}" if ended else "nothing was running", err=True)


@app.command()
def status(directory: _Directory = None) -> None:
    """Say which servers of this directory run, where and since which process."""
    from headrace._services.project import Project

    servers = Project(_place(directory)).known()
    if not servers:
        typer.echo(
            f"no servers in {_place(directory)}; start some: headrace dev up kafka", err=True
        )
    rows = []
    for server in servers:
        pid = server.pid
        state = "stopped" if pid is None else f"running (pid {pid})"
        rows.append((server.name, state, server.address, str(server.log)))
    table(rows)


def _words(run: str) -> list[str]:
    try:
        words = shlex.split(run)
    except ValueError as error:
        raise BuildError(f"--run {run!r} is no command: {error}") from None
    if not words:
        raise BuildError('--run needs a command, such as --run "python job.py"')
    return words


def _place(directory: Path | None) -> Path:
    from headrace._services.project import DIRECTORY

    return DIRECTORY if directory is None else directory
