"""`backup`: a whole copy while serving."""

from pathlib import Path

import click

from btcpay.backup.write import note_backup, write_backup
from btcpay.cli.context import Shell, answering, say
from btcpay.values.times import utc_now


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--quiet", is_flag=True, help="Print nothing while all is well, for cron.")
@answering
def backup(shell: Shell, file: Path, force: bool, quiet: bool) -> None:
    """Write a complete copy of the database to FILE, even while the service runs."""
    contents = write_backup(shell.settings.database_url, file, force)
    if problem := note_backup(shell.settings.database_url, utc_now()):
        say(f"the backup is complete, but its time could not be noted: {problem}")
    size = file.stat().st_size
    if shell.as_json or not quiet:
        shell.answer(
            {"file": str(file), "bytes": size} | vars(contents),
            f"{file}: {size} bytes, version {contents.version}, checked",
        )
