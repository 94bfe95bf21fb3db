"""Restores a backup into SQLite, or copies a SQLite backup into PostgreSQL.

All addresses in the backup are derived again and compared. A wrong address would send
payments to somebody else, or hide them.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from btcpay.backup.address_counters import Agree, Clock, Move, apply_moves, plan
from btcpay.backup.write import DOCS, refuse_own
from btcpay.bitcoin.address import address_of
from btcpay.bitcoin.extended_key import InvalidChild
from btcpay.merchants.account import stored_account
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network
from storage import locks, versions
from storage.backup import into_empty, old_database, sqlite_file
from storage.backup.old_database import OldDatabase
from storage.database import Database, open_database
from storage.models import Invoice, Merchant
from storage.queries import idempotency, merchants, meta, receivers
from storage.queries.lists import exports, keyset
from storage.versions import migrate

# The number of invoices that are loaded at a time.
AT_ONCE = 10_000


@dataclass(frozen=True)
class Restored:
    """The result of a restore.

    - `migrated`: the names of the migrations that were run on the copy of the backup.
    - `moves`: the advances of the copy's address counters.
    - `aside`: the file with the contents of the former database; None if there was no
      database.
    """

    migrated: list[str]
    moves: list[Move]
    aside: Path | None = None


def restore(
    path: Path,
    settings: Settings,
    file: Path,
    skip: int,
    agree: Agree,
    clock: Clock,
) -> Restored:
    """Replaces the contents of the SQLite database at `path` with the backup `file`.

    1. Copies the backup to a file beside the database. Checks that the copy is complete
       and belongs to this network, and migrates it to the present schema.
    2. Derives all addresses and scripts in the copy again and compares them. Searches the
       chain for used addresses, asks the owner to confirm (`agree`), and advances the
       copy's address counters.
    3. Locks the database. Copies from the database into the copy: higher address counters,
       and newer revocations of API keys. Saves the contents of the database in another
       file, then replaces them with the copy in one database transaction.

    `skip` is the number of addresses that each counter leaves out after the last used
    one. Raises CommandError if the backup is invalid, if the chain cannot be searched,
    or if the database is in use.
    """
    _require(file)
    refuse_own(path, file)
    with (
        _alone(settings, path) as present,
        sqlite_file.new_file(path, "restoring") as new,
    ):
        restored = prepare(
            settings,
            file=file,
            new=new,
            skip=skip,
            agree=agree,
            clock=clock,
            present=present,
        )
        with sqlite_file.alone(path) as place:
            old_database.keep_newer(place, new)
            now_text = f"{clock():%Y%m%dT%H%M%S.%fZ}"
            aside = old_database.set_aside(place, path, now_text)
            sqlite_file.replace(place, new)
    return replace(restored, aside=aside)


def carry_over(
    db: Database,
    settings: Settings,
    file: Path,
    skip: int,
    agree: Agree,
    clock: Clock,
) -> Restored:
    """Copies a SQLite backup into an empty PostgreSQL database.

    Migrates a temporary copy of the backup to the present schema. Searches the chain
    for used addresses, asks the owner to confirm (`agree`), and advances the copy's
    address counters. Then copies all rows. `skip` is the number of addresses that each
    counter leaves out after the last used one. Raises CommandError if the backup is
    invalid, if the chain cannot be searched, or if the PostgreSQL database is not empty.
    """
    _require(file)
    if not into_empty.is_sqlite(file):
        raise CommandError(
            f"{file} is not an SQLite backup: use pg_restore, as {DOCS} says"
        )
    into_empty.require_empty(db)
    sqlite_file.discard_all(file, "carrying")  # temporary copies of killed processes
    with sqlite_file.new_file(file, "carrying") as new:
        restored = prepare(
            settings,
            file=file,
            new=new,
            skip=skip,
            agree=agree,
            clock=clock,
            present=OldDatabase(),
        )
        into_empty.carry_over(new, db, finish=lambda: None)
    return restored


def move_counters(
    db: Database,
    settings: Settings,
    skip: int,
    agree: Agree,
    clock: Clock,
) -> list[Move]:
    """Advances the address counters of the database in use, after a pg_restore.

    Asks the owner to confirm (`agree`). Derives all addresses again and compares them.
    `skip` is the number of addresses that each counter leaves out after the last used
    one. Raises CommandError if an address does not belong to its account, or if the
    chain cannot be searched.
    """
    moves = plan(db, settings, skip, clock, counters={}, is_copy=False)
    lost_names: list[str] = []
    programs: list[str] = []  # the operator's own, which run already
    agree(moves, lost_names, programs)
    _derive_again(db, settings.network)
    apply_moves(db, moves)
    return moves


def prepare(
    settings: Settings,
    file: Path,
    new: Path,
    skip: int,
    agree: Agree,
    clock: Clock,
    present: OldDatabase,
) -> Restored:
    """Makes `new`, a copy of the backup `file` that can replace the `present` database.

    Migrates the copy, checks its addresses, asks the owner to confirm (`agree`), and
    advances its address counters. No counter becomes lower than in the `present`
    database. Releases the idempotency keys of requests that had not ended. `skip` is the
    number of addresses that each counter leaves out after the last used one. Raises
    CommandError if the backup is invalid, or if the chain cannot be searched.
    """
    url = f"sqlite:///{new}"
    sqlite_file.copy(file, new)
    version, network = sqlite_file.inspect(new, file)
    _refuse_network(file, network, settings.network.name)
    if version > versions.VERSION:
        raise CommandError(
            f"{file} is at version {version}, newer than this program's"
            f" {versions.VERSION}: install the newer program"
        )
    migrated = migrate(url, settings.network.name)
    with closing(open_database(url)) as db:
        _derive_again(db, settings.network)
        moves = plan(db, settings, skip, clock, counters=present.counters)
        programs = [row.command for row in db.rows(receivers.LIST) if row.command]
        agree(moves, _lost_names(db, present), programs)
        apply_moves(db, moves)
        with db.write():
            db.run(idempotency.FREE)
            meta.put_time(db, meta.Key.RESTORED_MS, clock())
    return Restored(migrated, moves)


def _lost_names(db: Database, present: OldDatabase) -> list[str]:
    """Returns the names of merchants that the present database has, and the backup lacks."""
    accounts_in_backup = {row.account_key for row in db.rows(merchants.ALL)}
    lost_accounts = present.names.keys() - accounts_in_backup
    return sorted(present.names[account] for account in lost_accounts)


def _derive_again(db: Database, network: Network) -> None:
    """Derives the address of each invoice again, and compares it with the stored one.

    Raises CommandError if an address or script does not match its account key. A
    payment to a wrong address would go to somebody else, or would not be found.
    """
    for merchant in db.rows(merchants.ALL):
        pages = keyset.pages(db, exports.INVOICES, AT_ONCE, merchant_id=merchant.id)
        for row in chain.from_iterable(pages):
            _require_own(merchant, row, network)


def _require_own(merchant: Merchant, invoice: Invoice, network: Network) -> None:
    """Raises CommandError unless address and script are those of the invoice's index."""
    subject = f"nothing was changed: invoice {invoice.id} of {merchant.name}"
    try:
        script = stored_account(merchant.descriptor).script(invoice.address_index)
    except InvalidChild as error:
        raise CommandError(f"{subject}: {error}") from None
    address = address_of(script, network)
    if invoice.deposit_address != address:
        raise CommandError(
            f"{subject} has {invoice.deposit_address},"
            f" not the address {address} of its account key"
        )
    if invoice.script != script.hex():
        raise CommandError(
            f"{subject} has {invoice.script}, not the script of its address"
        )


def _refuse_network(file: Path, network: str | None, own_network: str) -> None:
    if network not in (None, own_network):
        raise CommandError(
            f"{file} belongs to {network}, but BLOCKTILL_NETWORK says {own_network}"
        )


@contextmanager
def _alone(settings: Settings, path: Path) -> Iterator[OldDatabase]:
    """Holds the lock of the check, and yields what the present database at `path` has.

    If there is no database, yields an empty OldDatabase. Raises CommandError if the
    database is in use, or belongs to another network.
    """
    present = OldDatabase()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    url = settings.database_url
    with locks.only_one(open_database(url), url, "check") as is_free:
        if not is_free:
            raise CommandError(f"a check or another restore uses {path}: stop it first")
        for purpose in ("restoring", "aside"):  # temporary copies of killed processes
            sqlite_file.discard_all(path, purpose)
        if path.exists():
            with sqlite_file.alone(path) as place:
                present = old_database.read_old(place)
            _require_version(path, present.version)
        _refuse_network(path, present.network, settings.network.name)
        yield present


def _require_version(path: Path, version: int | None) -> None:
    if version == versions.OLDER:  # its counters cannot be read reliably
        raise CommandError(sqlite_file.older_message(path))
    if version and version < versions.VERSION:  # its columns differ
        raise CommandError(
            f"{path} is at version {version}: run `blocktill migrate` first"
        )


def _require(file: Path) -> None:
    if not file.exists():
        raise CommandError(f"there is no file {file}")
