"""API keys for shops (`blocktill key issue --for`).

Each key belongs to one store (a shop in the Greenfield API), and has the permissions
that the shop's plug-in needs.
"""

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

import click

from btcpay import hooks
from btcpay.merchants import keys
from btcpay.merchants.branding import checked_url
from btcpay.parts.greenfield import queries
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database

_PORTS = {"http": 80, "https": 443}
_READ = "canviewinvoices cancreateinvoice"
_WEBHOOKS = "webhooks.canmodifywebhooks"
_ALL = f"{_READ} canviewstoresettings canmodifyinvoices {_WEBHOOKS}"
OF_STORE = "btcpay.store."  # the prefix of each permission in the Greenfield API
# The permissions that a plug-in can request, for the merchant to approve on a page. The
# permission _EMPTY has no effect in this service.
_EMPTY = "canmodifystoresettings"
_REFUNDS = "cancreatenonapprovedpullpayments"
GRANTABLE = f"{_ALL} {_EMPTY} {_REFUNDS}"
# The permissions that each plug-in requires. Some plug-ins reject a key that has more
# or fewer.
PERMISSIONS = {
    "magento": _ALL,
    "opencart": _ALL,
    "any": f"{_ALL} {_REFUNDS}",
    "woocommerce": f"{_ALL} {_REFUNDS}",
    "pretix": f"{_READ} {_WEBHOOKS}",
    "prestashop": f"{_ALL} {_EMPTY}",
    "shopware": f"{_READ} canviewstoresettings {_WEBHOOKS}",
}
OPTIONS = [
    click.Option(
        ["--for", "plugin"],
        type=click.Choice(sorted(PERMISSIONS)),
        help="A shop's plug-in: with --shop, in place of --scope.",
    ),
    click.Option(
        ["--shop"], metavar="URL", help="Where that shop is: its key is bound to it."
    ),
]
OFF = "plug-ins are answered by run and by the sandbox; serve wants BLOCKTILL_GREENFIELD=on"


def origin_of(url: str) -> str:
    """Returns the scheme, host and port of a URL as one text.

    Raises CommandError if the URL is invalid.
    """
    parts = urlsplit(checked_url(url))
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    return f"{parts.scheme}://{host}:{parts.port or _PORTS[parts.scheme]}"


def own_url(url: str, shop_url: str) -> str:
    """Returns the URL if it has the shop's scheme, host and port.

    Raises CommandError if one of them differs, or if the URL is invalid.
    """
    if origin_of(url) != origin_of(shop_url):
        raise CommandError(f"is not within {shop_url}")
    return checked_url(url)


def store_of(db: Database, merchant_id: int, shop_url: str, now: datetime) -> str:
    """Returns the id of the shop's store. Creates the store if there is none.

    Raises CommandError if `shop_url` is invalid.
    """
    origin = origin_of(shop_url)
    with db.write():
        # Adds no second store for the same shop.
        db.run(
            queries.ADD,
            id=new_id("store"),
            merchant_id=merchant_id,
            shop_url=origin,
            created_ms=to_ms(now),
        )
        store = db.get(queries.OF_SHOP, merchant_id=merchant_id, shop_url=origin)
    return str(store.id)


def issue(
    db: Database,
    settings: Settings,
    merchant_id: int,
    now: datetime,
    scope: str | None,
    options: Mapping[str, str | None],
) -> tuple[keys.IssuedKey, dict[str, str], list[str]] | None:
    """Issues a key for a shop; returns None if neither `--for` nor `--shop` is given.

    Returns the key, the named values to print above its secret, and hints for the user.
    Raises UsageError if only one of the two options is given, or if `--scope` is given
    too. Raises CommandError if the shop's URL is invalid.
    """
    plugin = options["plugin"]
    shop = options["shop"]
    if plugin is None and shop is None:
        return None
    if plugin is None or shop is None or scope:
        raise click.UsageError("either --scope, or --for and --shop together")
    store_id = store_of(db, merchant_id, shop, now)
    permissions = PERMISSIONS[plugin]
    issued = keys.issue(
        db,
        settings.network,
        merchant_id,
        scope="write",
        name=plugin,
        now=now,
        store_id=store_id,
        permissions=permissions,
    )
    named_values = {"base_url": settings.base_url, "store_id": store_id}
    return issued, named_values, _hints_of(settings, permissions)


def _hints_of(settings: Settings, permissions: str) -> list[str]:
    """Returns hints for the user about a new key with these permissions."""
    hints = []
    if _EMPTY in permissions:
        hints.append(
            f"{_EMPTY} is there because its plug-in wants it: it changes nothing here"
        )
    if not settings.greenfield:
        hints.append(OFF)
    return hints


HOOK = hooks.ApiKeys(options=OPTIONS, issue=issue)
