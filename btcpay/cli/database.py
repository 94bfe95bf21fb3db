"""Commands about the whole database: `migrate`, `backup` and `restore`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from btcpay.backup.address_counters import MOST_SKIP, SKIP, Agree, Move
from btcpay.backup.restore import carry_over, move_counters
from btcpay.backup.restore import restore as put_back
from btcpay.backup.write import DOCS, note_backup, write_backup
from btcpay.cli.output import json_object, printable, say
from btcpay.cli.shell import Shell, with_json_shell
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError
from btcpay.values.times import utc_now
from storage.database import Row, place_of, sqlite_path
from storage.steps import STEPS, steps
from storage.versions import migrate as run_steps


@click.command()
@with_json_shell
def migrate(shell: Shell) -> None:
    """Bring the database to this version."""
    result = run_migrations(shell.settings)
    shell.answer(result.facts, result.text)


class MigrationResult(NamedTuple):
    """The result of migrations.

    - `facts`: a dict for JSON, with `version`, `applied` (the names of the migrations
      that were run) and `new` (True for a new database).
    - `text`: the same for people.
    """

    facts: Row
    text: str


def run_migrations(settings: Settings, folder: Path = STEPS) -> MigrationResult:
    """Runs the migrations in `folder` that the database lacks.

    Raises DatabaseNotReady if the database cannot be migrated, for example because it
    belongs to another network.
    """
    url = settings.database_url
    network = settings.network.name
    applied = run_steps(url, network, folder)
    newest = len(steps(folder))
    is_new = len(applied) == newest
    text = f"at version {newest}, applied: {', '.join(applied) or 'nothing to do'}"
    if is_new:
        text = f"made a new database for {network}, {place_of(url)}\n{text}"
    facts = {"version": newest, "applied": applied, "new": is_new}
    return MigrationResult(facts, text)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option(
    "--quiet", is_flag=True, help="Print nothing while all is well, for cron."
)
@with_json_shell
def backup(shell: Shell, file: Path, force: bool, quiet: bool) -> None:
    """Write a complete copy of the database to FILE, even while the service runs."""
    version, network = write_backup(shell.settings.database_url, file, force)
    problem = note_backup(shell.settings.database_url, shell.now)
    if problem:
        say(f"the backup is complete, but its time could not be noted: {problem}")
    size = file.stat().st_size
    if shell.as_json or not quiet:
        shell.answer(
            {"file": str(file), "bytes": size, "version": version, "network": network},
            f"{file}: {size} bytes, version {version}, checked",
        )


A_SKIP = click.IntRange(0, MOST_SKIP)
UNKNOWN = (
    "Invoices made after the backup are unknown: what is paid to them reaches the wallet and is"
    f" not shown here ({DOCS}). Payments of known invoices come back with the next"
    " `blocktill check`."
)
REVOKED = (
    "A key revoked after the backup stays revoked only if the old database still said so:"
    " see `blocktill key list`."
)
COUNTERS = "merchant addresses before used next_index gap_limit"
NEVER_AGAIN = (
    "Never serve the SQLite database again: it would hand out the same addresses."
)


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--skip",
    type=A_SKIP,
    default=SKIP,
    help=f"Addresses beyond all seen [{SKIP}].",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="After pg_restore: move counters, log browsers out.",
)
@with_json_shell
def restore(
    shell: Shell,
    file: Path | None,
    yes: bool,
    skip: int,
    in_place: bool,
) -> None:
    """Replace the database with a backup, and move address counters past addresses used since.

    An SQLite backup can also be copied into a new PostgreSQL database. If neither explorers nor
    peers say which addresses were used, nothing is changed, and the exit status is 1.
    """
    is_file_given = file is not None
    if is_file_given == in_place:
        raise click.UsageError("name the FILE of a backup, or say --in-place")
    path = sqlite_path(shell.settings.database_url)
    agree = partial(_agree, shell.settings.network.name, yes)
    if file is None:  # --in-place
        agree_to_move = partial(agree, "Move the counters?")
        moves = move_counters(shell.db, shell.settings, skip, agree_to_move, utc_now)
        shell.answer(_counters(moves), "moved the counters")
    elif path is None:  # the database is on PostgreSQL
        agree_to_carry = partial(agree, f"Carry {file} over to PostgreSQL?")
        _carry_over(shell, file, skip, agree_to_carry)
    else:
        agree_to_replace = partial(agree, f"Replace {path} with {file}?")
        _replace(shell, path, file, skip, agree_to_replace)


def _replace(shell: Shell, path: Path, file: Path, skip: int, agree: Agree) -> None:
    """Replaces the SQLite file with the backup, and keeps the old file beside it."""
    restored = put_back(
        path,
        shell.settings,
        file=file,
        skip=skip,
        agree=agree,
        clock=utc_now,
    )
    old_file = None
    if restored.aside:
        old_file = str(restored.aside)
        say(f"The old database is kept as {old_file}.")
    else:
        say("There was no database before.")
    say(f"{UNKNOWN} {REVOKED}")
    facts: Row = {"file": str(file), "aside": old_file, "migrated": restored.migrated}
    shell.answer(facts | _counters(restored.moves), f"restored {file}")


def _carry_over(shell: Shell, file: Path, skip: int, agree: Agree) -> None:
    """Copies an SQLite backup into the new PostgreSQL database."""
    restored = carry_over(
        shell.db,
        shell.settings,
        file=file,
        skip=skip,
        agree=agree,
        clock=utc_now,
    )
    say(f"{UNKNOWN} {NEVER_AGAIN}")
    facts: Row = {"file": str(file), "migrated": restored.migrated}
    shell.answer(facts | _counters(restored.moves), f"restored {file}")


def _agree(
    network: str,
    yes: bool,
    question: str,
    moves: list[Move],
    lost_merchants: list[str],
    programs: list[str],
) -> None:
    """Prints the changes that the restore will make. Asks for confirmation unless `yes`.

    `lost_merchants` are the names of merchants that the backup lacks. `programs` are the
    programs that the next check will run.

    Raises click.Abort if the user declines. Raises CommandError if merchants would be
    lost and `yes` is set, since their loss must be confirmed at a prompt.
    """
    if lost_merchants:
        _warn_of_lost(lost_merchants, yes)
    merchants = f"{len(moves)} merchants"
    if len(moves) == 1:
        merchants = "1 merchant"
    say(f"This is a shop on {network} with {merchants}; compare with their wallets:")
    for move in moves:
        # Escaped, since somebody may have tampered with the backup.
        merchant = printable(move.merchant)
        say(f"{merchant}: the first addresses are {', '.join(move.addresses)}")
        seen = "nothing seen beyond it on the chain"
        if move.used:
            highest_used = move.used[-1]
            seen = f"seen up to {highest_used} on the chain"
        say(
            f"{merchant}: the address counter is {move.before}, {seen};"
            f" it will be {move.next_index}. The wallet needs a gap limit of {move.gap_limit}."
        )
    for program in programs:
        say(f"A check will run this program: {printable(program)}")
    if not yes:
        click.confirm(question, abort=True, err=True)


def _warn_of_lost(merchants: list[str], yes: bool) -> None:
    """Prints which merchants the backup lacks. Raises CommandError if `yes` is set."""
    verb = "are"
    if len(merchants) == 1:
        verb = "is"
    warning = f"{', '.join(merchants)} of this database {verb}"
    if yes:
        raise CommandError(
            f"{warning} not in this backup: run it without --yes to be asked"
        )
    say(f"{warning} not in this backup, and will be gone.")


def _counters(moves: Sequence[Move]) -> Row:
    return {"merchants": [json_object(vars(move), COUNTERS) for move in moves]}
