"""Adds the merchant for `setup`, with an API key and a login link."""

import sys
from contextlib import closing

import click
import segno

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.check.beginning import begin_chain
from btcpay.cli.output import say
from btcpay.cli.setup.machine import has_blocks
from btcpay.merchants import keys
from btcpay.merchants.account import stored_account
from btcpay.merchants.merchants import add_merchant
from btcpay.merchants.sessions import login_url
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError
from btcpay.values.times import utc_now
from storage.queries import merchants
from storage.versions import open_ready


def make_merchant(settings: Settings, name: str, account: Descriptor) -> None:
    """Adds the merchant, and prints an API key and a login link.

    Only prints a message if there is a merchant of this name with the same account.
    Raises CommandError if that merchant's account differs.
    """
    network = settings.network
    now = utc_now()
    with closing(open_ready(settings.database_url, network.name)) as db:
        present = db.get_or_none(merchants.BY_NAME, name=name)
        if present:
            if stored_account(present.descriptor).script(0) != account.script(0):
                raise CommandError(
                    f"the merchant {name} has another account key: choose a new name"
                )
            say(f"the merchant {name} is there already")
            return
        owner = add_merchant(db, name, account, now)
        begin_chain(db, settings, utc_now)
        say(
            f"added {name}, and a key for its program, which may create invoices, shown once:"
        )
        click.echo(keys.issue(db, network, owner.id, "write", "setup", now).secret)
        if settings.merchant_pages:
            _show_link(login_url(db, settings.base_url, owner.id, now))


def _show_link(url: str) -> None:
    say("Link to the merchant's pages, once the service runs; within ten minutes:")
    say(url)
    if has_blocks(sys.stderr):
        segno.make_qr(url).terminal(sys.stderr, compact=True)
