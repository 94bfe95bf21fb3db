"""`restore`: a backup comes back, and every address counter past what the chain has seen."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from btcpay.backup.address_counters import Agree, move_counters
from btcpay.backup.restore import Restored, carry_over
from btcpay.backup.restore import restore as put_back
from btcpay.backup.write import DOCS
from btcpay.cli.context import Shell, answering, say
from btcpay.merchants.discovery import Move
from btcpay.values.errors import CommandError
from btcpay.values.times import utc_now
from storage.database import Row, sqlite_path

SKIP = 100  # addresses given out after the backup and not yet paid are unknown
MOST_SKIPPED = 10_000
UNKNOWN = (
    "Invoices made after the backup are unknown: what is paid to them reaches the wallet and is"
    f" not shown here ({DOCS}). Payments of known invoices come back with the next `btcpay check`."
)


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--skip",
    type=click.IntRange(0, MOST_SKIPPED),
    default=SKIP,
    show_default=True,
    help="Addresses to pass over beyond the last one that the chain has seen.",
)
@click.option(
    "--in-place", is_flag=True, help="Move the counters and log browsers out, as after pg_restore."
)
@answering
def restore(shell: Shell, file: Path | None, yes: bool, skip: int, in_place: bool) -> None:
    """Put a backup in the database's place, and every address counter past what the chain has seen.

    Where the database is PostgreSQL's, it is new, and a backup of SQLite is carried over to it.
    Changes nothing, with exit status 1, when the chain cannot be asked.
    """
    if (file is None) != in_place:
        raise click.UsageError("name the FILE of a backup, or say --in-place")
    agree = partial(_agree, shell.settings.network.name, yes)
    if file is None:
        asked = partial(agree, "Move the counters?")
        told = _counters(move_counters(shell.db, shell.settings, skip, asked, utc_now))
    elif path := sqlite_path(shell.settings.database_url):
        asked = partial(agree, f"Replace {path} by {file}?")
        told = _restore(shell, path, file, skip, asked)
    else:
        asked = partial(agree, f"Carry {file} over to PostgreSQL?")
        told = _carry_over(shell, file, skip, asked)
    shell.answer(told, f"restored {file}" if file else "moved the counters")


def _restore(shell: Shell, path: Path, file: Path, skip: int, agree: Agree) -> Row:
    restored = put_back(path, shell.settings, file, skip, agree, utc_now)
    aside = restored.aside
    say(f"The old database is kept as {aside}." if aside else "There was no database before.")
    say(
        f"{UNKNOWN} A key revoked after the backup stays revoked only as far as the old database"
        " said so: `btcpay key list`."
    )
    return {"file": str(file), "aside": str(aside) if aside else None} | _told(restored)


def _carry_over(shell: Shell, file: Path, skip: int, agree: Agree) -> Row:
    restored = carry_over(shell.db, shell.settings, file, skip, agree, utc_now)
    say(f"{UNKNOWN} Never serve the SQLite database again: it would hand out the same addresses.")
    return {"file": str(file)} | _told(restored)


def _agree(
    network: str, yes: bool, question: str, moves: Sequence[Move], lost: Sequence[str]
) -> None:
    """Shows what will be, and asks unless `yes`; ends the command when the owner declines."""
    _tell_lost(lost, yes)
    say(f"This is a shop on {network} with {len(moves)} merchant(s); compare with their wallets:")
    for move in moves:
        say(f"{move.merchant}: the first addresses are {', '.join(move.first)}")
        seen = f"seen up to {move.used[-1]}" if move.used else "nothing seen beyond it"
        say(
            f"{move.merchant}: the address counter stands at {move.before}, {seen} on the chain;"
            f" it will be {move.after}. The wallet needs a gap limit of {move.gap_limit}."
        )
    if not yes:
        click.confirm(question, abort=True, err=True)


def _tell_lost(names: Sequence[str], yes: bool) -> None:
    """A merchant who would be lost needs a considered answer, which `--yes` is not.

    Raises CommandError.
    """
    if not names:
        return
    told = f"{', '.join(names)} of the database in place {'is' if len(names) == 1 else 'are'} not"
    if yes:
        raise CommandError(f"{told} in this backup: run it without --yes, which asks")
    say(f"{told} in this backup, and will be gone.")


def _told(restored: Restored) -> Row:
    return {"migrated": restored.migrated} | _counters(restored.moves)


def _counters(moves: Sequence[Move]) -> Row:
    """What the answer says of each merchant's counter."""
    return {
        "merchants": [
            {
                "merchant": move.merchant,
                "addresses": list(move.first),
                "before": move.before,
                "used": list(move.used),
                "next_index": move.after,
                "gap_limit": move.gap_limit,
            }
            for move in moves
        ]
    }
