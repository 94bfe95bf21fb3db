"""Shops whose plug-ins speak Greenfield: where each is, and keys that are bound to it."""

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import urlsplit

from btcpay.merchants import keys
from btcpay.merchants.branding import checked_url
from btcpay.values.errors import CommandError
from btcpay.values.ids import new_id
from btcpay.values.networks import Network
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import stores

_PORTS = {"http": 80, "https": 443}
_PREFIX = "btcpay.store."
_READ = ("canviewinvoices", "cancreateinvoice")
_WEBHOOKS = "webhooks.canmodifywebhooks"
_ALL = (*_READ, "canviewstoresettings", "canmodifyinvoices", _WEBHOOKS)
# What each plug-in looks for: they compare exactly, and contradict each other.
PERMISSIONS = {
    "any": _ALL,
    "magento": _ALL,
    "opencart": _ALL,
    "pretix": (*_READ, _WEBHOOKS),
    "prestashop": (*_ALL, "canmodifystoresettings"),  # which nothing honours
    "shopware": (*_READ, "canviewstoresettings", _WEBHOOKS),
    "woocommerce": _ALL,
}
# What a plug-in may be given where it asks for it by itself.
HONOURED = PERMISSIONS["prestashop"]


def origin_of(url: str) -> str:
    """Scheme, host and port of a web address. Raises CommandError for none."""
    parts = urlsplit(checked_url(url))
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    scheme = parts.scheme.lower()
    return f"{scheme}://{host}:{parts.port or _PORTS[scheme]}"


def is_within(url: str, shop_url: str) -> bool:
    """Whether a web address is the shop's own: the same scheme, host and port."""
    try:
        return origin_of(url) == origin_of(shop_url)
    except CommandError:
        return False


def named(permission: str) -> str:
    """As plug-ins know it: `btcpay.store.canviewinvoices`."""
    return _PREFIX + permission


def issue_for_shop(
    db: Database,
    network: Network,
    merchant_id: int,
    plugin: str,
    shop_url: str,
    now: datetime,
    asked: Iterable[str] | None = None,
    **once: str,
) -> tuple[str, keys.Issued]:
    """The store of that shop, made if there is none, and a new key of it. Raises CommandError.

    `plugin` is one of PERMISSIONS, unless it has `asked` for some; `once` as of `keys.issue`.
    """
    shop = {"merchant_id": merchant_id, "shop_url": origin_of(shop_url)}
    with db.write():
        db.run(stores.ADD, id=new_id("store"), created_at=to_ms(now), **shop)
        store = db.only(stores.OF_SHOP, **shop)
        permissions = " ".join(PERMISSIONS[plugin] if asked is None else asked)
        issued = keys.issue(
            db, network, merchant_id, "write", plugin, now, store["id"], permissions, **once
        )
    return store["id"], issued
