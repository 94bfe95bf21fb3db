"""The menu of the merchant's pages.

It is one line on a wide screen. On a phone it consists of tabs and a page *More*.
"""

from dataclasses import replace

from btcpay import hooks
from btcpay.hooks import MenuItem
from btcpay.parts.merchant_pages.session_queries import Session, inbox_column
from btcpay.settings.settings import Settings
from btcpay.web.pages.languages import gettext

# The `d` attributes of the icons' SVG paths, in a box of 24 by 24.
TODAY = "M4 20v-7h4v7M10 20V4h4v16M16 20v-10h4v10M2 20h20"
TILL = (
    "M5 3h14v18H5zM8 6h8v4H8zM8.5 14h.1M12 14h.1M15.5 14h.1M8.5 17.5h.1M12 17.5h.1"
    "M15.5 17.5h.1"
)
SALES = "M6 3h12v18l-3-2-3 2-3-2-3 2zM9 8h6M9 12h6"
LINKS = (
    "M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0"
    " 5.7 5.7l1-1"
)
MONTH = (
    "M4 5h16v16H4zM4 10h16M8 3v4M16 3v4M8 14h.1M12 14h.1M16 14h.1M8 17.5h.1M12 17.5h.1"
)
SHOPS = "M4 10v10h16V10M3 10l2-6h14l2 6zM9 20v-6h6v6"
SETTINGS = (
    "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5a2.5 2.5 0 1 0 0 5a2.5 2.5 0 0 0 0-5M9 14.5a2.5"
    " 2.5 0 1 0 0 5a2.5 2.5 0 0 0 0-5"
)


def menu_of(session: Session) -> list[MenuItem]:
    """Returns the items of the menu in order. The items that are tabs on a phone come first."""
    items = [
        MenuItem("", gettext("Today"), TODAY, is_tab=True),
        MenuItem("/till", gettext("Till"), TILL, is_tab=True),
        MenuItem("/invoices", gettext("Sales"), SALES, is_tab=True),
        *_items_of_parts(session),
        MenuItem("/links", gettext("Links"), LINKS),
        MenuItem("/month", gettext("Month"), MONTH),
    ]
    if session.password_scrypt and session.others:
        items.append(MenuItem("/shops", gettext("Shops"), SHOPS))
    items.append(MenuItem("/settings", gettext("Settings"), SETTINGS))
    return sorted(items, key=lambda item: not item.is_tab)


def _items_of_parts(session: Session) -> list[MenuItem]:
    """Returns the items of parts (optional plug-ins).

    `waiting` of an item is the number of things of its part that need the merchant's
    attention.
    """
    items = []
    for name, part in hooks.by_part(hooks.MerchantViews).items():
        if part.menu_item is None:
            continue
        item = part.menu_item()
        waiting = getattr(session, inbox_column(name), 0)
        items.append(replace(item, waiting=waiting))
    return items


def front_page_link(settings: Settings) -> tuple[str, str] | None:
    """Returns the link from the page `/` to the merchant's pages.

    Returns None if the settings switch these pages off.
    """
    if not settings.merchant_pages:
        return None
    return "merchant", gettext("Log in to your shop")
