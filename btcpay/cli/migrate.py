"""`migrate`: brings the database to this version, and makes one where there is none."""

import click

from btcpay.cli.context import Shell, answering
from btcpay.settings.settings import Settings
from storage.database import Row, place_of
from storage.migrate import migrate as run_steps
from storage.versions import VERSION, steps


@click.command()
@answering
def migrate(shell: Shell) -> None:
    """Bring the database to this version."""
    shell.answer(*migrated(shell.settings))


def migrated(settings: Settings) -> tuple[Row, str]:
    """Migrates; what was done, for a program and for a person."""
    url, network = settings.database_url, settings.network.name
    done = run_steps(url, network)
    is_new = len(done) == len(steps())
    text = f"at version {VERSION}, applied: {', '.join(done) or 'nothing to do'}"
    if is_new:
        text = f"made a new database for {network}, {place_of(url)}\n{text}"
    return {"version": VERSION, "applied": done, "new": is_new}, text
