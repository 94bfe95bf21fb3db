"""`backup`: a whole copy while serving."""

from pathlib import Path

import click

from btcpay.backup.write import note_backup, write_backup
from btcpay.cli.context import Shell, answer_json, as_json, say, with_shell
from btcpay.values.times import utc_now


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--quiet", is_flag=True, help="Say nothing while all is well: for cron.")
@as_json
@with_shell
def backup(shell: Shell, file: Path, force: bool, quiet: bool, as_json: bool) -> None:
    """Write a whole copy of the database to FILE, also while it is served."""
    contents = write_backup(shell.settings.database_url, file, force)
    if problem := note_backup(shell.settings.database_url, utc_now()):
        say(f"the backup is whole; that it was made could not be noted: {problem}")
    told = {"file": str(file), "bytes": file.stat().st_size} | vars(contents)
    if as_json:
        answer_json(told)
    elif not quiet:
        click.echo(f"{file}: {told['bytes']} bytes, version {contents.version}, found whole")
