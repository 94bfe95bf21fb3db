"""Puts a backup in the database's place, or carries a SQLite backup over to PostgreSQL.

Its addresses are derived again: a wrong one would take or hide payments.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from btcpay.backup.address_counters import Agree, Clock, Move, apply_moves, plan
from btcpay.backup.write import DOCS, refuse_own
from btcpay.bitcoin.address import address_of
from btcpay.bitcoin.keys import InvalidChild
from btcpay.merchants.account import stored_account
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network
from storage import locks, versions
from storage.backup import old_database, sqlite_file, to_postgres
from storage.backup.old_database import Place
from storage.database import Database, open_database
from storage.models import Invoice, Merchant
from storage.queries import idempotency, merchants, meta, receivers
from storage.queries.lists import exports, keyset
from storage.versions import migrate

AT_ONCE = 10_000  # invoices in memory


@dataclass(frozen=True)
class Restored:
    """Migrations that the copy needed, its counters' moves, where the old database is kept."""

    migrated: list[str]
    moves: list[Move]
    aside: Path | None = None


def restore(
    path: Path, settings: Settings, file: Path, skip: int, agree: Agree, clock: Clock
) -> Restored:
    """The SQLite database at `path` becomes what the backup was. Raises CommandError.

    In this order:

    1. The backup is copied beside the database, found whole and of this network, and migrated.
    2. Addresses and scripts are derived again, the chain is asked, the owner agrees, and the
       copy's counters are moved.
    3. With the database to itself: facts that must not be forgotten go into the copy, its
       contents are set aside, and the copy's take their place in one transaction.
    """
    _require(file)
    refuse_own(path, file)
    with (
        _to_itself(settings, path) as place_has,
        sqlite_file.new_file(path, "restoring") as new,
    ):
        restored = _prepare(settings, file, new, skip, agree, clock, place_has)
        with sqlite_file.alone(path) as place:
            old_database.keep_newer(place, new)
            aside = old_database.set_aside(place, path, f"{clock():%Y%m%dT%H%M%S.%fZ}")
            sqlite_file.replace(place, new)
    return replace(restored, aside=aside)


def carry_over(
    db: Database, settings: Settings, file: Path, skip: int, agree: Agree, clock: Clock
) -> Restored:
    """A SQLite backup becomes what is in a server's new database. Raises CommandError.

    Works like `restore`, but on a copy beside the backup.
    """
    _require(file)
    if not to_postgres.is_sqlite(file):
        raise CommandError(
            f"{file} is not an SQLite backup: use pg_restore, as {DOCS} says"
        )
    to_postgres.require_empty(db)
    sqlite_file.discard_all(file, "carrying")  # of one that was killed
    with sqlite_file.new_file(file, "carrying") as new:
        restored = _prepare(settings, file, new, skip, agree, clock, Place())
        to_postgres.carry_over(new, db)
    return restored


def move_counters(
    db: Database, settings: Settings, skip: int, agree: Agree, clock: Clock
) -> list[Move]:
    """Moves the counters of the database in place, as after pg_restore. Raises CommandError."""
    moves = plan(db, settings, skip, clock, {}, is_copy=False)
    agree(moves, [], [])
    _derive_again(db, settings.network)
    apply_moves(db, moves)
    return moves


def _prepare(
    settings: Settings,
    file: Path,
    new: Path,
    skip: int,
    agree: Agree,
    clock: Clock,
    has: Place,
) -> Restored:
    """Makes `new` of the backup: of this version, counters moved, no idempotency key held.

    No counter falls behind that of the database in place.
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
        moves = plan(db, settings, skip, clock, has.counters)
        kept = {row.account_key for row in db.rows(merchants.ALL)}
        lost = sorted(has.names[account] for account in has.names.keys() - kept)
        agree(
            moves, lost, [row.command for row in db.rows(receivers.LIST) if row.command]
        )
        apply_moves(db, moves)
        with db.write():
            db.run(idempotency.FREE)
            meta.put_time(db, meta.Key.RESTORED_AT, clock())
    return Restored(migrated, moves)


def _derive_again(db: Database, network: Network) -> None:
    """Raises CommandError for an address or a script that is not its account key's.

    Money would come to somebody else, or would not be found.
    """
    for merchant in db.rows(merchants.ALL):
        for rows in keyset.pages(
            db, exports.INVOICES, AT_ONCE, merchant_id=merchant.id
        ):
            for row in rows:
                _require_own(merchant, row, network)


def _require_own(merchant: Merchant, invoice: Invoice, network: Network) -> None:
    where = f"nothing was changed: invoice {invoice.id} of {merchant.name}"
    try:
        script = stored_account(merchant.descriptor).script(invoice.address_index)
    except InvalidChild as error:
        raise CommandError(f"{where}: {error}") from None
    address = invoice.deposit_address
    if address != (derived := address_of(script, network)):
        raise CommandError(
            f"{where} has {address}, not the address {derived} of its account key"
        )
    if invoice.script != script.hex():
        raise CommandError(
            f"{where} has {invoice.script}, not the script of its address"
        )


def _refuse_network(file: Path, found: str | None, said: str) -> None:
    if found not in (None, said):
        raise CommandError(
            f"{file} belongs to {found}, but BLOCKTILL_NETWORK says {said}"
        )


@contextmanager
def _to_itself(settings: Settings, path: Path) -> Iterator[Place]:
    """Holds the lock of the checks; yields what the database in place has.

    Raises CommandError when the database is in use, or of another network.
    """
    has = Place()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    url = settings.database_url
    with locks.only_one(open_database(url), url, "check") as free:
        if not free:
            raise CommandError(f"a check or another restore uses {path}: stop it first")
        for purpose in ("restoring", "aside"):  # of a restore that was killed
            sqlite_file.discard_all(path, purpose)
        if path.exists():
            with sqlite_file.alone(path) as place:
                has = old_database.look_into(place)
            if (
                has.version == versions.OLDER
            ):  # with counters that cannot be read for certain
                raise CommandError(sqlite_file.older(path))
            if (
                has.version or versions.VERSION
            ) < versions.VERSION:  # with other columns
                raise CommandError(
                    f"{path} is at version {has.version}: run `blocktill migrate` first"
                )
        _refuse_network(path, has.network, settings.network.name)
        yield has


def _require(file: Path) -> None:
    if not file.exists():
        raise CommandError(f"there is no file {file}")
