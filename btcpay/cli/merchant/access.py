"""Command `key` for API keys; `merchant login`, `sessions` and `logout` for browsers."""

import stat
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from btcpay import hooks
from btcpay.cli.output import say
from btcpay.cli.shell import Shell, with_json_shell, with_shell
from btcpay.merchants import keys
from btcpay.merchants import sessions as merchant_sessions
from btcpay.merchants.merchants import find_merchant
from btcpay.merchants.sessions import device_of
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network
from btcpay.values.times import iso_ms, to_ms, utc_now
from storage.database import Database
from storage.queries import keys as stored_keys
from storage.statement import as_dict

KEY_COLUMNS = (
    "id name merchant_id merchant scope last_four created_at last_used_at revoked_at"
)

KEY_FILE = "write_key"  # in the database's folder, only in a shop with play money
OWNER_READS_WRITES = stat.S_IRUSR | stat.S_IWUSR
OTHER_KINDS = hooks.of(hooks.ApiKeys)
key = click.Group("key", help="API keys: issued once, stored as a hash.")


@key.command(
    "issue", params=[option for part in OTHER_KINDS for option in part.options]
)
@click.argument("merchant")
@click.option("--scope", type=click.Choice(["read", "write"]))
@click.option("--name", default="", help="A text to tell keys apart.")
@with_json_shell
def key_issue(
    shell: Shell,
    merchant: str,
    scope: str | None,
    name: str,
    **options: Any,
) -> None:
    """Issue a key; its secret is shown once."""
    owner = find_merchant(shell.db, merchant)
    if _issue_by_parts(shell, owner.id, scope, options):
        return
    if scope is None:
        raise click.UsageError(
            "give --scope, or the options of another kind of key: see --help"
        )
    network = shell.settings.network
    checked = keys.checked_name(name)
    with shell.db.write():
        keys.require_room(shell.db, owner.id, shell.now)
        issued = keys.issue(shell.db, network, owner.id, scope, checked, shell.now)
    shell.answer(issued._asdict(), issued.secret)


def _issue_by_parts(
    shell: Shell,
    owner_id: int,
    scope: str | None,
    options: Mapping[str, Any],
) -> bool:
    """Prints a key that a part (an optional plug-in) has issued. Returns False if none has.

    A part issues a key if one of its own options is given.
    """
    settings = shell.settings
    for part in OTHER_KINDS:
        answer = part.issue(shell.db, settings, owner_id, shell.now, scope, options)
        if answer is None:
            continue
        issued, facts, hints = answer
        text = "\n".join([*facts.values(), issued.secret])
        shell.answer(facts | issued._asdict(), text)
        for hint in hints:
            say(hint)
        return True
    return False


def play_money_key(db: Database, network: Network, merchant_id: int, file: Path) -> str:
    """Returns the secret of an API key with the scope "write", which `file` has.

    If the file is missing, or has no secret of a valid key, issues a new key with the
    file's name, and writes the key's secret to the file.

    Call this function only for shops with play money: the secrets of other shops must
    not be stored in files.
    """
    if file.exists():
        secret = file.read_text(encoding="ascii").strip()
        if secret and keys.caller_of(db, secret, utc_now()):
            return secret
    issued = keys.issue(db, network, merchant_id, "write", file.name, utc_now())
    write_secret(file, issued.secret)
    return issued.secret


def write_secret(file: Path, secret: str = "") -> None:
    """Writes the secret and a newline to the file. If the secret is "", empties the file.

    A new file is readable and writable by its owner only (mode 600).
    """
    text = ""
    if secret:
        text = f"{secret}\n"
    file.touch(mode=OWNER_READS_WRITES)
    file.write_text(text, encoding="ascii")


@key.command("list")
@with_json_shell
def key_list(shell: Shell) -> None:
    """List all keys, without their secrets."""
    shell.show(shell.db.rows(stored_keys.ALL), KEY_COLUMNS)


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@with_shell
def key_revoke(shell: Shell, key_id: str) -> None:
    """Revoke a key now."""
    keys.revoke(shell.db, key_id, shell.now)
    say(f"revoked {key_id}")


@key.command("rotate")
@click.argument("key_id", metavar="ID")
@click.option(
    "--grace",
    metavar="HOURS",
    type=click.IntRange(0, 8760),
    default=24,
    help="[24]",
)
@with_json_shell
def key_rotate(shell: Shell, key_id: str, grace: int) -> None:
    """Replace a key by a new one; the old one still works for the HOURS of --grace."""
    network = shell.settings.network
    period = timedelta(hours=grace)
    issued = keys.rotate(shell.db, network, key_id, period, shell.now)
    shell.answer(issued._asdict(), issued.secret)
    say(f"the old key {key_id} works for {grace} more hours")


SESSION_COLUMNS = "id opens browser created_at last_used_at"
MAYBE_OFF = (
    "`blocktill run` and the sandbox have these pages;"
    " `serve` wants BLOCKTILL_MERCHANT_PAGES=on"
)


@click.command("login")
@click.argument("merchant")
@click.option(
    "--till", is_flag=True, help="It opens the till, its sales and receipts alone."
)
@with_json_shell
def login(shell: Shell, merchant: str, till: bool) -> None:
    """Print a link that opens the merchant's pages once, within ten minutes."""
    if not shell.settings.merchant_pages:
        say(MAYBE_OFF)
    owner = find_merchant(shell.db, merchant)
    now = shell.now
    base_url = shell.settings.base_url
    url = merchant_sessions.login_url(shell.db, base_url, owner.id, now, till_only=till)
    answer = {
        "merchant": merchant,
        "opens": _opens(till),
        "url": url,
        "expires_at": iso_ms(to_ms(now + merchant_sessions.LINK_LIFE)),
    }
    shell.answer(answer, url)


def _opens(till_only: bool) -> str:
    """Returns "till" for a session that opens only the till, else "everything"."""
    if till_only:
        return "till"
    return "everything"


@click.command("sessions")
@click.argument("merchant")
@with_json_shell
def sessions(shell: Shell, merchant: str) -> None:
    """List the browsers that are logged in to a merchant's pages, the newest first."""
    owner = find_merchant(shell.db, merchant)
    rows = []
    for row in merchant_sessions.sessions_of(shell.db, owner.id, shell.now):
        device = device_of(row.browser)
        browser = device.browser
        if device.system:
            browser = f"{device.browser} on {device.system}"
        cells = {"opens": _opens(bool(row.till_only)), "browser": browser}
        rows.append(as_dict(row) | cells)
    shell.show(rows, SESSION_COLUMNS)


@click.command("logout")
@click.argument("merchant")
@click.option(
    "--session", metavar="ID", help="Only this one, from `blocktill merchant sessions`."
)
@with_shell
def logout(shell: Shell, merchant: str, session: str | None) -> None:
    """Log out all browsers of a merchant, or one; revoke all its unused login links."""
    owner = find_merchant(shell.db, merchant)
    if session is not None:
        if not merchant_sessions.end(shell.db, owner.id, session):
            raise CommandError(f"there is no session {session!r}")
        say(f"logged out {session}")
        return
    count = merchant_sessions.end_all(shell.db, owner.id)
    if count == 1:
        say("logged out 1 browser")
    else:
        say(f"logged out {count} browsers")
