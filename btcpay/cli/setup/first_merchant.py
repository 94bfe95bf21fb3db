"""The merchant of `setup`: made with a key and a way into the pages."""

from contextlib import closing

import click

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.cli.context import say
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
    """Adds the merchant, or leaves the one of this name. Raises CommandError for another key."""
    url, network, now = settings.database_url, settings.network, utc_now()
    with closing(open_ready(url, network.name)) as db:
        there = db.row(merchants.BY_NAME, name=name)
        if there and stored_account(there.descriptor).script(0) != account.script(0):
            raise CommandError(f"the merchant {name} has another account key: choose a new name")
        if there:
            say(f"the merchant {name} is there already")
            return
        owner = add_merchant(db, name, account, now)
        say(f"added {name}, and a key for its program, which may create invoices, shown once:")
        click.echo(keys.issue(db, network, owner.id, "write", "setup", now).secret)
        if settings.merchant_pages:
            say("Link to the merchant's pages, once the service runs; within ten minutes:")
            say(login_url(db, settings.base_url, owner.id, now))
