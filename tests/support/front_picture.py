"""`python front_picture.py FILE`: README's first picture, of one shop after six weeks.

Its checkout on a phone, its till on a tablet, its month on a desk. The sales are made up, from a
fixed seed; the pages are those of `btcpay serve`.
"""

import base64
import io
import random
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

from browser import DESK, TABLET, Browser
from builders import TickerServer, pay
from hosted import Hosted, open_hosted
from merchant_browser import log_in
from PIL import Image

from btcpay.invoices.create import live_price, new_invoice, order_of
from btcpay.merchants.merchants import set_brand, set_currency, set_timezone
from schemas.requests import NEW_PRICED_INVOICE, load

PRICE = {"usd": "60000.00", "eur": "52000.00"}
PHONE = (390, 760)
DAYS = 45
HEIGHT, GAP, AROUND = 560, 16, "#8a929c"
MOST_BYTES = 200_000


def sell(hosted: Hosted, amount: str, what: str) -> dict[str, str]:
    """An invoice in euros, as the till makes it."""
    service, owner_id, now = hosted.shop.service, hosted.shop.merchant_id, hosted.clock()
    wanted = {"amount": Decimal(amount), "description": what, "expires_in_hours": Decimal(1)}
    order = order_of(owner_id, load(NEW_PRICED_INVOICE, wanted), "EUR")
    order = order._replace(details={**order.details, "tip": "0"})
    price = live_price(service.db, service.prices, owner_id, now, "EUR")
    with service.db.write():
        return new_invoice(service.db, service.settings.network, now, order, price)


def live_through(hosted: Hosted) -> None:
    chance = random.Random(7)
    hosted.clock.move(seconds=-DAYS * 86_400)
    for day in range(DAYS):
        times = sorted(chance.uniform(0, 28_000) for _ in range(chance.randint(1, 7)))
        if day % 7 == 2:
            times = times[:1]
        for before, at in zip([0, *times], [*times, 86_400], strict=False):
            hosted.clock.move(seconds=at - before)
            if at < 86_400:
                amount = chance.choice(["4.50", "9.00", "12.50", "18.00", "27.90", "42.00"])
                pay(hosted.shop, sell(hosted, amount, "Coffee"), USD="60000", EUR="52000")


def shot(browser: Browser, hosted: Hosted, size: tuple[int, int], path: str) -> Image.Image:
    """What the window shows of a page, scaled to one height."""
    tab = browser.open(hosted.root, size=size)
    if path.startswith("/merchant"):
        log_in(tab, hosted)
    tab.emulate(size, still=True, scale=2)
    tab.call("Emulation.setScrollbarsHidden", hidden=True)
    assert tab.go(hosted.root + path) == 200
    tab.until("document.readyState === 'complete'")
    data = tab.call("Page.captureScreenshot")["data"]
    picture = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
    tab.close()
    width = picture.width * HEIGHT // picture.height
    return picture.resize((width, HEIGHT), Image.Resampling.LANCZOS)


def main(file: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        TickerServer() as ticker,
        open_hosted(Path(place), ticker, BTCPAY_MERCHANT_PAGES="on") as hosted,
        Browser(Path(place)) as browser,
    ):
        ticker.price(**PRICE)
        db, owner = hosted.shop.service.db, {"id": hosted.shop.merchant_id}
        set_brand(db, owner, {"name": "Corner Coffee"})
        set_currency(db, owner, "EUR")
        set_timezone(db, owner, "Europe/Berlin")
        live_through(hosted)
        order, sale = sell(hosted, "27.90", "Two bags of coffee"), sell(hosted, "12.50", "Cake")
        pages = [
            shot(browser, hosted, PHONE, f"/pay/{order['id']}"),
            shot(browser, hosted, TABLET, f"/merchant/till/{sale['id']}"),
            shot(browser, hosted, DESK, "/merchant/month"),
        ]
    width = sum(page.width for page in pages) + GAP * (len(pages) + 1)
    whole = Image.new("RGB", (width, HEIGHT + 2 * GAP), AROUND)
    left = GAP
    for page in pages:
        whole.paste(page, (left, GAP))
        left += page.width + GAP
    whole.save(file, quality=80, method=6)
    assert file.stat().st_size < MOST_BYTES


if __name__ == "__main__":
    main(Path(sys.argv[1]))
