"""`migrate`: brings the database to this version, and makes one where there is none."""

import click

from btcpay.cli.context import Shell, answer_json, as_json, with_shell
from storage.database import place_of
from storage.migrate import migrate as bring_up_to_date
from storage.versions import FIRST, VERSION


@click.command()
@as_json
@with_shell
def migrate(shell: Shell, as_json: bool) -> None:
    """Bring the database to this version."""
    url, network = shell.settings.database_url, shell.settings.network.name
    done = bring_up_to_date(url, network)
    is_new = FIRST in done
    if as_json:
        answer_json({"version": VERSION, "applied": done, "new": is_new})
        return
    if is_new:
        click.echo(f"made a new database for {network}, {place_of(url)}")
    click.echo(f"at version {VERSION}, applied: {', '.join(done) or 'nothing to do'}")
