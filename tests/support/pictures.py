"""`python pictures.py SHOTS PICTURES`: the pictures that README and the documents show.

SHOTS has what `make screenshots` took of the checkout; the workbench joins it. What is shown are
the real pages: of `blocktill sandbox`, and of a shop whose sales are made up.
"""

import io
import itertools
import random
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from btcpay.invoices.create import new_invoice
from btcpay.invoices.orders import order_of
from btcpay.invoices.quotes import quote
from btcpay.merchants.branding import brand_columns
from btcpay.merchants.merchants import set_brand, set_currency, set_timezone
from schemas.requests import NEW_PRICED_INVOICE, load
from storage.statement import as_dict
from tests.support.browser import DESK, PHONE, TABLET, Browser
from tests.support.builders import TickerServer, pay
from tests.support.film import film_sale
from tests.support.fonts import PHONE as PHONE_FONT
from tests.support.fonts import fonts_on
from tests.support.hosted import Hosted, open_counter, open_hosted
from tests.support.merchant_browser import log_in
from tests.support.playground import scene_of, start_playground

HEIGHT = 560
GAP = 16
# Every state of the checkout beside each other, every other one in the dark theme.
STATES = (
    *("branded", "countdown", "seen", "partial", "dust", "vanished"),
    *("paid", "paid_twice", "too_much", "too_much_seen", "undone", "long_ago"),
    *("overdue", "expired", "expired_half_paid", "expired_and_paid_late"),
    *("canceled", "link_flexible", "link_fixed", "link_wrong_amount", "link_gone"),
    *("link_too_many", "link_nothing_here"),
)
COLUMNS = 6
WIDTH = 260
FILMED = "paid-in-time"
STAGE = (1120, 700)
EVERY_MS = 500
FIRST_MS = 1500
LAST_MS = 4000
DAYS = 45
ACCENT = "#0b7a4b"


def together(pictures: list[Image.Image], columns: int, file: Path) -> None:
    """Rows of pictures that are HEIGHT high at most."""
    rows = [pictures[at : at + columns] for at in range(0, len(pictures), columns)]
    width = GAP + max(sum(one.width + GAP for one in row) for row in rows)
    whole = Image.new("RGB", (width, GAP + len(rows) * (HEIGHT + GAP)), "#8a929c")
    for number, row in enumerate(rows):
        left = GAP
        for one in row:
            whole.paste(one, (left, GAP + number * (HEIGHT + GAP)))
            left += one.width + GAP
    whole.save(file, quality=75, method=6)


def checkout_states(shots: Path, file: Path) -> None:
    """Each state's upper part. Raises FileNotFoundError for one without a picture."""
    pictures = []
    for state, theme in zip(STATES, itertools.cycle(("light", "dark")), strict=False):
        picture = Image.open(shots / f"{state}-390-{theme}.png").convert("RGB")
        picture = picture.resize((WIDTH, picture.height * WIDTH // picture.width))
        pictures.append(picture.crop((0, 0, WIDTH, min(HEIGHT, picture.height))))
    together(pictures, COLUMNS, file)


def sandbox(browser: Browser, folder: Path, shots: Path, file: Path) -> None:
    """The film of one scene, an animated WebP, and the workbench at its end."""
    playground = start_playground(folder)
    try:
        tab = browser.open(playground.chain, size=STAGE, still=True)
        tab.call("Emulation.setScrollbarsHidden", hidden=True)
        tab.go(f"{playground.chain}/")
        tab.until("document.getElementById('customer').dataset.page")
        frames = [tab.picture(whole=False)]
        tab.click(f"#scene-{FILMED}")
        tab.until("document.querySelector('#story li')")
        while scene_of(playground)["state"] == "playing":
            frames.append(tab.picture(whole=False))
            time.sleep(EVERY_MS / 1000)
        tab.until("document.querySelector('#story .end')")
        frames.append(tab.picture(whole=False))
        sustainable_per_minute = [FIRST_MS, *[EVERY_MS] * (len(frames) - 2), LAST_MS]
        others: dict[str, Any] = {
            "save_all": True,
            "append_images": frames[1:],
            "duration": sustainable_per_minute,
            "loop": 0,
        }
        frames[0].save(file, quality=70, method=6, minimize_size=True, **others)
        assert file.stat().st_size < 500_000
        for (where, size), theme in itertools.product(
            (("desk", DESK), ("phone", PHONE)), ("light", "dark")
        ):
            tab.emulate(size, theme, still=True)
            tab.picture().save(shots / f"sandbox-{where}-{theme}.png")
    finally:
        playground.stop()


def sell(hosted: Hosted, amount: str, what: str) -> dict[str, Any]:
    """An invoice in euros, as the till makes it."""
    service = hosted.shop.service
    now = hosted.clock()
    wanted = {
        "amount": Decimal(amount),
        "description": what,
        "expires_in_hours": Decimal(1),
    }
    details = load(NEW_PRICED_INVOICE, wanted) | {"gratuity": "0"}
    order = order_of(hosted.shop.merchant_id, details, "EUR")
    quoted = quote(service.prices, now, order)
    with service.db.write():
        return as_dict(new_invoice(service.db, service.settings.network, now, quoted))


def live_through(hosted: Hosted) -> None:
    """Six weeks of sales."""
    chance = random.Random(7)
    hosted.clock.move(seconds=-DAYS * 86_400)
    for day in range(DAYS):
        times = sorted(chance.uniform(0, 28_000) for _ in range(chance.randint(1, 7)))
        times = times[:1] if day % 7 == 2 else times
        for before, at in itertools.pairwise([0, *times, 86_400]):
            hosted.clock.move(seconds=at - before)
            if at < 86_400:
                amount = chance.choice(
                    ["4.50", "9.00", "12.50", "18.00", "27.90", "42.00"]
                )
                pay(
                    hosted.shop,
                    sell(hosted, amount, "Coffee"),
                    USD="60000",
                    EUR="52000",
                )


def logo(width: int = 96) -> bytes:
    """A cup, in the colour of the shop."""
    picture = Image.new("RGB", (width, 96), ACCENT)
    file = io.BytesIO()
    ImageDraw.Draw(picture).chord((24, 8, 72, 72), 0, 180, "#ffffff")
    picture.save(file, "PNG")
    return file.getvalue()


def furnish(hosted: Hosted) -> None:
    """The shop's brand, its currency, and six weeks of sales."""
    db = hosted.shop.service.db
    owner = hosted.shop.merchant_id
    brand = {
        "name": "Harbour Roasters",
        "accent": ACCENT,
        "contact": "hello@roasters.example",
    }
    columns: Any = brand_columns(logo(), **brand)
    set_brand(db, owner, columns)
    set_currency(db, owner, "EUR")
    set_timezone(db, owner, "Europe/Berlin")
    live_through(hosted)


def shop(browser: Browser, hosted: Hosted, pictures: Path) -> None:
    """Its checkout on a phone, its till on a tablet, its month on a desk; two whole checkouts."""

    def shot(path: str, whole: bool = False, **how: Any) -> Image.Image:
        tab = browser.open(hosted.root)
        if path.startswith("/merchant"):
            log_in(tab, hosted)
        tab.emulate(still=True, **how)
        tab.call("Emulation.setScrollbarsHidden", hidden=True)
        assert tab.go(hosted.root + path) == 200
        tab.until("true")
        picture = tab.picture(whole)
        tab.close()
        width = picture.width * HEIGHT // picture.height
        return (
            picture
            if whole
            else picture.resize((width, HEIGHT), Image.Resampling.LANCZOS)
        )

    furnish(hosted)
    order = sell(hosted, "27.90", "Two bags of coffee")
    sale = sell(hosted, "12.50", "Cake")
    page = f"/pay/{order['id']}"
    shown = {
        page: (390, 760),
        f"/merchant/till/{sale['id']}": TABLET,
        "/merchant/month": DESK,
    }
    row = [shot(path, size=size, scale=2) for path, size in shown.items()]
    together(row, len(row), pictures / "shop.webp")
    assert (pictures / "shop.webp").stat().st_size < 200_000
    waits = shot(page, True, size=(1024, 700))
    waits.save(pictures / "checkout-waiting.png", optimize=True)
    pay(hosted.shop, order, USD="60000", EUR="52000")
    paid = shot(page, True, size=PHONE, theme="dark", scale=1.5)
    paid.save(pictures / "checkout-paid.png", optimize=True)


def require_font(browser: Browser, hosted: Hosted) -> None:
    """Raises SystemExit if the pages are not drawn in the font of phones."""
    tab = browser.open(hosted.root)
    tab.go(f"{hosted.root}/pay/inv_x")
    found = fonts_on(tab)
    tab.close()
    if found != {PHONE_FONT}:
        raise SystemExit(f"install fonts-roboto-unhinted: {found} is drawn")


def film(pictures: Path) -> None:
    """A sale on a phone, on a chain of its own."""
    with (
        tempfile.TemporaryDirectory() as place,
        TickerServer() as ticker,
        open_counter(Path(place), ticker, BLOCKTILL_MERCHANT_PAGES="on") as counter,
        Browser(Path(place)) as browser,
    ):
        ticker.price("60000.00", eur="52000.00")
        film_sale(browser, counter, pictures / "sale.webp", ACCENT)


def main(shots: Path, pictures: Path) -> None:
    film(pictures)
    checkout_states(shots, pictures / "checkout-states.webp")
    with (
        tempfile.TemporaryDirectory() as place,
        TickerServer() as ticker,
        open_hosted(Path(place), ticker, BLOCKTILL_MERCHANT_PAGES="on") as hosted,
        Browser(Path(place)) as browser,
    ):
        ticker.price("60000.00", eur="52000.00")
        require_font(browser, hosted)
        shop(browser, hosted, pictures)
        (folder := Path(place, "sandbox")).mkdir()
        sandbox(browser, folder, shots, pictures / "sandbox.webp")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
