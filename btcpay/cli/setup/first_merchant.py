"""The merchant of `setup`: made where there is none, with a key and a way into the pages."""

import sys
from contextlib import closing

import click
import segno

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.cli.context import say
from btcpay.cli.setup.answers import Talk
from btcpay.merchants import keys
from btcpay.merchants.account import stored_account
from btcpay.merchants.merchants import add_merchant
from btcpay.merchants.sessions import login_url, sessions_of
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError
from btcpay.values.times import utc_now
from storage.database import Database
from storage.models import Merchant
from storage.queries import merchants
from storage.versions import open_ready


def make_merchant(talk: Talk, settings: Settings, merchant: tuple[str, Descriptor] | None) -> None:
    """The merchant, and a key for the shop's program when there is none."""
    url, network = settings.database_url, settings.network
    with closing(open_ready(url, network.name)) as db:
        there = db.rows(merchants.ALL)
        if merchant is None and not there:
            merchant = talk.merchant(network)
        owner = _with_account(db, *merchant) if merchant else there[0]
        if not talk.given["here"] and not keys.has_write_key(db, owner.id):
            say(f"A key for a program of {owner.name}, which may create invoices, shown once:")
            issued = keys.issue(db, network, owner.id, "write", "setup", utc_now())
            click.echo(issued.secret)
        if settings.merchant_pages and not sessions_of(db, owner.id, utc_now()):
            _show_way_in(login_url(db, settings.base_url, owner.id, utc_now()))


def _show_way_in(url: str) -> None:
    say("Link to the merchant's pages, once the service runs; for one browser, within ten minutes:")
    say(url)
    if sys.stderr.isatty():
        segno.make_qr(url).terminal(sys.stderr, compact=True)


def _with_account(db: Database, name: str, account: Descriptor) -> Merchant:
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
