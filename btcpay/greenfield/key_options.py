"""`btcpay key issue --for PLUGIN --shop URL`: a key that is bound to a shop."""

from collections.abc import Mapping
from datetime import datetime

import click

from btcpay.greenfield.shops import BY_BUTTON, PERMISSIONS, store_of
from btcpay.merchants import keys
from btcpay.settings.settings import Settings
from storage.database import Database

OPTIONS = [
    click.Option(
        ["--for", "plugin"],
        type=click.Choice(sorted(PERMISSIONS)),
        help="A shop's plug-in: with --shop, in place of --scope.",
    ),
    click.Option(["--shop"], metavar="URL", help="Where that shop is: its key is bound to it."),
]
OFF = "plug-ins are answered by the sandbox, and elsewhere only with BTCPAY_GREENFIELD=on"


def issue(
    db: Database,
    settings: Settings,
    merchant_id: int,
    now: datetime,
    scope: str | None,
    options: Mapping[str, str | None],
) -> tuple[keys.Issued, dict[str, str], list[str]] | None:
    """The key, the values to show above its secret, and hints; None without these options."""
    plugin, shop = options["plugin"], options["shop"]
    if plugin is None and shop is None:
        return None
    if plugin is None or shop is None or scope:
        raise click.UsageError("either --scope, or --for and --shop together")
    store_id = store_of(db, merchant_id, shop, now)
    of_shop = (store_id, PERMISSIONS[plugin])
    issued = keys.issue(db, settings.network, merchant_id, "write", plugin, now, *of_shop)
    by_button = f"{plugin} gets its key only by its own button: docs/merchants/shop-plugins.md"
    hints = [by_button] * (plugin in BY_BUTTON) + [OFF] * (not settings.greenfield)
    return issued, {"base_url": settings.base_url, "store_id": store_id}, hints
