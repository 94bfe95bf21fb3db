"""The merchant that `setup` makes, and the first link into its pages."""

import sys

import segno

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.cli.context import say
from btcpay.merchants.account import stored_account
from btcpay.merchants.merchants import add_merchant
from btcpay.values.errors import CommandError
from btcpay.values.times import utc_now
from storage.database import Database
from storage.models import Merchant
from storage.queries import merchants


def show_way_in(url: str) -> None:
    """Shows the link into the merchant's pages, in a terminal with its QR code."""
    say("Link to the merchant's pages, once the service runs; for one browser, within ten minutes:")
    say(url)
    if sys.stderr.isatty():
        segno.make_qr(url).terminal(sys.stderr, compact=True)


def with_account(db: Database, name: str, account: Descriptor) -> Merchant:
    """The merchant of this name, added if need be. Raises CommandError for another account key."""
    row = db.row(merchants.BY_NAME, name=name)
    if row is None:
        row = add_merchant(db, name, account, utc_now())
        say(f"added {name}")
    elif stored_account(row.descriptor).script(0) == account.script(0):
        say(f"the merchant {name} is there already")
    else:
        raise CommandError(f"the merchant {name} has another account key: choose a new name")
    return row
