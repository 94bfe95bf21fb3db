"""`backup` and `restore`: a whole copy while serving, and the way back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from btcpay.cli.context import Shell, answer_json, as_json, say, with_shell
from btcpay.cli.restoring import agree, plan, prepare, told_of
from btcpay.errors import CommandError
from btcpay.settings import Settings
from btcpay.times import utc_now
from btcpay.wallet.discovery import apply_moves
from storage import migrate
from storage.backup import carrying, copies, crossing
from storage.database import Row, open_database, sqlite_path

SKIP = 100  # addresses given out after the backup and not yet paid are unknown
MOST_SKIPPED = 10_000
DOCS = "docs/backup.md"
UNKNOWN = (
    "Invoices made after the backup are unknown: what is paid to them reaches the wallet and is"
    f" not shown here ({DOCS}). Payments of known invoices come back with the next `btcpay check`."
)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--quiet", is_flag=True, help="Say nothing while all is well: for cron.")
@as_json
@with_shell
def backup(shell: Shell, file: Path, force: bool, quiet: bool, as_json: bool) -> None:
    """Write a whole copy of the database to FILE, also while it is served."""
    path = sqlite_path(shell.settings.database_url)
    if path is None:
        raise CommandError(f"this database is PostgreSQL's: use pg_dump as {DOCS} says")
    migrate.refuse_missing(shell.settings.database_url)
    _refuse_own(path, file)
    if not file.parent.is_dir():
        raise CommandError(f"there is no folder {file.parent}: make it first")
    if file.exists() and not force:
        raise CommandError(f"{file} exists: name another file, or say --force")
    with copies.new_file(file, "part") as part:
        copies.copy(path, part)
        contents = copies.inspect(part, path)
        copies.publish(part, file)
    told = {"file": str(file), "bytes": file.stat().st_size} | vars(contents)
    if as_json:
        answer_json(told)
    elif not quiet:
        click.echo(f"{file}: {told['bytes']} bytes, version {contents.version}, found whole")


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
@click.option("--in-place", is_flag=True, help="Only move the counters, as after pg_restore.")
@as_json
@with_shell
def restore(
    shell: Shell, file: Path | None, yes: bool, skip: int, in_place: bool, as_json: bool
) -> None:
    """Put a backup in the database's place, and every address counter past what the chain has seen.

    Where the database is PostgreSQL's, it is new, and a backup of SQLite is carried over to it.
    Changes nothing, with exit status 1, when the chain cannot be asked.
    """
    if (file is None) != in_place:
        raise click.UsageError("name the FILE of a backup, or say --in-place")
    if file is None:
        moves = plan(shell.db, shell.settings, skip)
        agree(moves, shell.settings.network.name, yes, "Move the counters?")
        apply_moves(shell.db, moves)
        told: Row = {"merchants": told_of(moves)}
    elif path := sqlite_path(shell.settings.database_url):
        told = _restore(shell.settings, path, file, skip, yes)
    else:
        told = _carry_over(shell, file, skip, yes)
    if as_json:
        answer_json(told)
    else:
        click.echo(f"restored {file}" if file else "moved the counters")


def _restore(settings: Settings, path: Path, file: Path, skip: int, yes: bool) -> Row:
    """The trip, in this order.

    1. The backup is copied beside the database, found whole and of this network, and migrated.
    2. The chain is asked, and the copy's counters are moved.
    3. With the database to itself: what it knows and must not forget goes into the copy, its
       contents are set aside, and the copy's take their place in one transaction.
    """
    _require(file)
    _refuse_own(path, file)
    with _to_itself(settings, path) as (counters, named), copies.new_file(path, "restoring") as new:
        prepared = prepare(settings, file, new, skip, counters)
        _tell_lost(carrying.names_beyond(named, new), yes)
        agree(prepared.moves, settings.network.name, yes, f"Replace {path} by {file}?")
        prepared.finish(settings)
        with copies.alone(path) as place:
            carrying.carry(place, new)
            aside = carrying.set_aside(place, path, f"{utc_now():%Y%m%dT%H%M%SZ}")
            copies.replace(place, new)
    say(f"The old database is kept as {aside}." if aside else "There was no database before.")
    say(
        f"{UNKNOWN} A key revoked after the backup stays revoked only as far as the old database"
        " said so: `btcpay key list`."
    )
    return {"file": str(file), "aside": str(aside) if aside else None} | prepared.told()


def _carry_over(shell: Shell, file: Path, skip: int, yes: bool) -> Row:
    """A SQLite backup becomes what is in a server's new database.

    What `_restore` does to a copy beside the database is done to one beside the backup.
    """
    _require(file)
    if not crossing.is_sqlite(file):
        raise CommandError(f"{file} is no backup of SQLite's: use pg_restore as {DOCS} says")
    crossing.require_empty(shell.db)
    copies.discard_all(file, "carrying")  # of one that was killed
    with copies.new_file(file, "carrying") as new:
        prepared = prepare(shell.settings, file, new, skip, {})
        agree(prepared.moves, shell.settings.network.name, yes, f"Carry {file} over to PostgreSQL?")
        prepared.finish(shell.settings)
        crossing.carry_over(new, shell.db)
    say(f"{UNKNOWN} Never serve the SQLite database again: it would hand out the same addresses.")
    return {"file": str(file)} | prepared.told()


def _tell_lost(names: list[str], yes: bool) -> None:
    """A merchant that is gone afterwards needs an answer, and `--yes` is none that was thought of.

    Raises CommandError.
    """
    if not names:
        return
    told = f"{', '.join(names)} of the database in place {'is' if len(names) == 1 else 'are'} not"
    if yes:
        raise CommandError(f"{told} in this backup: say so without --yes, which asks")
    say(f"{told} in this backup, and will be gone.")


@contextmanager
def _to_itself(settings: Settings, path: Path) -> Iterator[tuple[dict[str, int], dict[str, str]]]:
    """Holds the lock of the checks; yields counters and names of those in place, by account.

    Raises CommandError when the database is in use, or of another network.
    """
    found, counters, named = None, dict[str, int](), dict[str, str]()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    url = settings.database_url
    with migrate.only_one(open_database(url), url, "check") as free:
        if not free:
            raise CommandError(f"a check or another restore uses {path}: stop it first")
        for purpose in ("restoring", "aside"):  # of a restore that was killed
            copies.discard_all(path, purpose)
        if path.exists():
            with copies.alone(path) as place:
                found, counters = carrying.network_in(place), carrying.counters_in(place)
                named = carrying.names_in(place)
        if found not in (None, settings.network.name):
            raise CommandError(
                f"{path} belongs to {found}, BTCPAY_NETWORK says {settings.network.name}"
            )
        yield counters, named


def _require(file: Path) -> None:
    if not file.exists():
        raise CommandError(f"there is no file {file}")


def _refuse_own(path: Path, file: Path) -> None:
    """Neither the database nor what SQLite keeps beside it is a place for a backup."""
    own = [Path(f"{path}{suffix}").resolve() for suffix in ("", "-wal", "-shm", "-journal")]
    if file.resolve() in own or (file.exists() and path.exists() and file.samefile(path)):
        raise CommandError(f"{file} is the database itself")


COMMANDS = (backup, restore)
