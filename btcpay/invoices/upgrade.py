"""Brings a database to this version; what its own did not keep is derived from what it has."""

from datetime import datetime

from btcpay.invoices.update_attention import try_update
from btcpay.merchants.account import parse_account
from btcpay.settings.settings import Settings
from storage.database import Database
from storage.migrate import migrate
from storage.queries import merchants, payments
from storage.queries.totals import days
from storage.values import Values


def upgrade(settings: Settings, url: str, now: datetime) -> list[str]:
    """Runs the missing steps; their names, in order. Raises DatabaseNotReady as `migrate`."""

    def derive(db: Database) -> None:
        """Descriptors of account keys, sums of days, and what has come to each invoice."""
        for row in db.rows(merchants.ALL):
            _, script_type, key = row.descriptor.split()
            account = parse_account(key, settings.network, script_type)
            what: Values = {"descriptor": str(account), "account_key": account.identity}
            db.run(merchants.SET_ACCOUNT, **what | {"id": row.id})
            days.recount(db, row.id, row.timezone)
        for paid in db.rows(payments.PAID_TO):
            try_update(db, settings, paid.invoice_id, now)

    return migrate(url, settings.network.name, derives={"0002_whole": derive})
