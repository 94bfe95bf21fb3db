"""`merchant login`, `logout` and `sessions`: browsers that may open the merchant's pages."""

import sys

import click

from btcpay.cli.context import Shell, answering, say, with_shell
from btcpay.merchants import sessions as merchant_sessions
from btcpay.merchants.merchants import find_merchant
from btcpay.values.errors import CommandError
from btcpay.values.times import iso_ms, to_ms, utc_now
from storage.statement import as_dict

COLUMNS = "id browser created_at last_used_at"
OFF = "the merchant's pages are off: set BTCPAY_MERCHANT_PAGES=on and restart the service"
MAYBE_OFF = "the sandbox serves this page; for a service of your own set BTCPAY_MERCHANT_PAGES=on"


@click.command("login")
@click.argument("merchant")
@answering
def login(shell: Shell, merchant: str) -> None:
    """Print a link that opens the merchant's pages once, within ten minutes."""
    if not shell.settings.merchant_pages:
        if shell.settings.network.name != "regtest":
            raise CommandError(OFF)
        say(MAYBE_OFF)  # the sandbox's pages are on, whatever is set in this terminal
    owner, now = find_merchant(shell.db, merchant), utc_now()
    url = merchant_sessions.login_url(shell.db, shell.settings.base_url, owner.id, now)
    expires_at = iso_ms(to_ms(now + merchant_sessions.LINK_LIFE))
    shell.answer({"merchant": merchant, "url": url, "expires_at": expires_at}, url)
    if sys.stderr.isatty() and not shell.as_json:
        say("works once, within ten minutes: open it in the browser that is to be logged in")


@click.command("sessions")
@click.argument("merchant")
@answering
def sessions(shell: Shell, merchant: str) -> None:
    """The browsers that are logged in to a merchant's pages, the newest first."""
    owner = find_merchant(shell.db, merchant)
    rows = []
    for row in merchant_sessions.sessions_of(shell.db, owner.id, utc_now()):
        name = " on ".join(part for part in merchant_sessions.named(row.browser) if part)
        rows.append(as_dict(row) | {"browser": name, "user_agent": row.browser})
    shell.show(rows, f"{COLUMNS} user_agent" if shell.as_json else COLUMNS)


@click.command("logout")
@click.argument("merchant")
@click.option("--session", metavar="ID", help="Only this one, from `btcpay merchant sessions`.")
@with_shell
def logout(shell: Shell, merchant: str, session: str | None) -> None:
    """Log out every browser of a merchant, and revoke its unused login links."""
    owner = find_merchant(shell.db, merchant)
    if session is not None:
        merchant_sessions.end(shell.db, owner.id, session)
        say(f"logged out {session}")
        return
    ended = merchant_sessions.end_all(shell.db, owner.id)
    say(f"logged out {ended} browser{'' if ended == 1 else 's'}")
