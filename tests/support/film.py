"""The film of a sale on a phone, README's first picture: an animated WebP."""

from pathlib import Path
from typing import Any

from PIL import Image

from btcpay.merchants.branding import brand_columns
from btcpay.merchants.merchants import set_brand, set_currency, set_timezone
from tests.support.browser import Browser, Tab
from tests.support.hosted import Counter
from tests.support.merchant_browser import log_in

SIZE = (360, 720)
SCALE = 1.5
MOST_BYTES = 400_000
AMOUNT = "8.40"
# How long a scene stands, in ms.
LOOK_MS = 1500
KEY_MS = 350
READ_MS = 2000


class Film:
    """Pictures of a tab, each with how long it is shown."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._frames: list[Image.Image] = []
        self._durations_ms: list[int] = []

    def shoot(self, duration_ms: int) -> None:
        self._frames.append(self._tab.picture(whole=False).convert("RGB"))
        self._durations_ms.append(duration_ms)

    def save(self, file: Path) -> None:
        others: dict[str, Any] = {
            "save_all": True,
            "append_images": self._frames[1:],
            "duration": self._durations_ms,
            "loop": 0,
        }
        self._frames[0].save(file, quality=80, method=6, minimize_size=True, **others)
        assert file.stat().st_size < MOST_BYTES
        assert sum(self._durations_ms) <= 12_000


def film_sale(browser: Browser, counter: Counter, file: Path, accent: str) -> None:
    """A sale of the till: typed, shown, seen, paid; and the next one."""
    shop = counter.shop
    db = shop.service.db
    brand: Any = brand_columns(name="Harbour Roasters", accent=accent)
    set_brand(db, shop.merchant_id, brand)
    set_currency(db, shop.merchant_id, "EUR")
    set_timezone(db, shop.merchant_id, "Europe/Berlin")
    tab = log_in(browser.open(counter.root), counter)
    tab.emulate(SIZE, still=True, scale=SCALE)
    tab.call("Emulation.setScrollbarsHidden", hidden=True)
    tab.go(f"{counter.root}/merchant/till")
    tab.until("document.activeElement.id === 'amount'")
    film = Film(tab)
    film.shoot(LOOK_MS)
    for key in AMOUNT:
        # Not by the mouse, for which the page would be scrolled.
        tab.ask(f"document.querySelector(\"#keypad [data-key='{key}']\").click()")
        film.shoot(KEY_MS)
    tab.ask("document.getElementById('show').click()")
    tab.until("document.getElementById('qr')")
    film.shoot(READ_MS)
    id = tab.ask("location.pathname.split('/').pop()")
    invoice = shop.get(f"/invoices/{id}").json
    counter.pay(invoice)
    tab.until_state("seen")
    film.shoot(LOOK_MS)
    counter.mine()
    tab.until_state("paid")
    film.shoot(READ_MS)
    tab.click("#next")
    tab.until("document.getElementById('sales')")
    tab.ask("document.getElementById('sales').scrollIntoView()")
    film.shoot(LOOK_MS)
    film.save(file)
    tab.close()
