"""Shops whose plug-ins speak Greenfield: where each is, its store, what a key of it may do."""

from datetime import datetime
from urllib.parse import urlsplit

from btcpay.greenfield import queries
from btcpay.merchants.branding import checked_url
from btcpay.values.errors import CommandError
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database, Values

_PORTS = {"http": 80, "https": 443}
_READ = "canviewinvoices cancreateinvoice"
_WEBHOOKS = "webhooks.canmodifywebhooks"
_ALL = f"{_READ} canviewstoresettings canmodifyinvoices {_WEBHOOKS}"
# What a plug-in may be given where it asks for it by itself; nothing honours the last.
HONOURED = f"{_ALL} canmodifystoresettings"
# What each plug-in looks for: they compare exactly, and contradict each other.
PERMISSIONS = dict.fromkeys(("any", "magento", "opencart", "woocommerce"), _ALL) | {
    "pretix": f"{_READ} {_WEBHOOKS}",
    "prestashop": HONOURED,
    "shopware": f"{_READ} canviewstoresettings {_WEBHOOKS}",
}
BY_BUTTON = {"magento", "prestashop"}  # have no field that takes a key of ours


def origin_of(url: str) -> str:
    """Scheme, host and port of a web address. Raises CommandError for none."""
    parts = urlsplit(checked_url(url))
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or _PORTS[parts.scheme]}"


def own_url(url: str, shop_url: str) -> str:
    """A web address of the shop's own: the same scheme, host and port. Raises CommandError."""
    if origin_of(url) != origin_of(shop_url):
        raise CommandError(f"is not within {shop_url}")
    return checked_url(url)


def named(permission: str) -> str:
    """As plug-ins know it: `btcpay.store.canviewinvoices`."""
    return f"btcpay.store.{permission}"


def store_of(db: Database, merchant_id: int, shop_url: str, now: datetime) -> str:
    """The id of that shop's store, made if there is none. Raises CommandError."""
    shop: Values = {"merchant_id": merchant_id, "shop_url": origin_of(shop_url)}
    with db.write():
        db.run(queries.ADD, **shop | {"id": new_id("store"), "created_at": to_ms(now)})
        return str(db.only(queries.OF_SHOP, **shop).id)
