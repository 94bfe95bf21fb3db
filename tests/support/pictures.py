"""`python pictures.py SHOTS PICTURES`: the pictures that README and the documents show.

SHOTS has what `make screenshots` took of the checkout; the workbench in every scene joins it. What
is shown are the real pages: of `btcpay sandbox`, and of a shop whose sales are made up.
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

from browser import DESK, PHONE, TABLET, Browser, Tab
from builders import TickerServer, pay, until
from hosted import Hosted, open_hosted
from merchant_browser import log_in
from PIL import Image, ImageChops, ImageDraw
from playground import Playground, scene_of, start_playground

from btcpay.invoices.create import new_invoice, order_of, quote
from btcpay.merchants.branding import checked
from btcpay.merchants.merchants import set_brand, set_currency, set_timezone
from schemas.requests import NEW_PRICED_INVOICE, load
from storage.statement import as_dict

AROUND, HEIGHT = "#8a929c", 560

# Every state of the checkout beside each other, every other one in the dark theme.
STATES = (
    *("branded", "countdown", "seen", "partial", "dust", "vanished"),
    *("paid", "paid_twice", "too_much", "too_much_seen", "undone", "long_ago"),
    *("overdue", "expired", "expired_of_a_link", "expired_half_paid", "expired_and_paid_late"),
    *("canceled", "link_flexible", "link_fixed", "link_wrong_amount", "link_gone"),
    *("link_too_many", "link_nothing_here"),
)
COLUMNS, WIDTH = 6, 260


def checkout_states(shots: Path, file: Path) -> None:
    """Each state's upper part. Raises FileNotFoundError for one without a picture."""
    gap, rows = 12, -(-len(STATES) // COLUMNS)
    size = (gap + COLUMNS * (WIDTH + gap), gap + rows * (HEIGHT + gap))
    whole = Image.new("RGB", size, AROUND)
    for number, state in enumerate(STATES):
        theme = "dark" if number % 2 else "light"
        picture = Image.open(shots / f"{state}-390-{theme}.png").convert("RGB")
        picture = picture.resize((WIDTH, picture.height * WIDTH // picture.width))
        row, column = divmod(number, COLUMNS)
        place = (gap + column * (WIDTH + gap), gap + row * (HEIGHT + gap))
        whole.paste(picture.crop((0, 0, WIDTH, min(HEIGHT, picture.height))), place)
    whole.save(file, quality=70, method=6)


# The film of one scene, and pictures of all at their end.

FILMED, STAGE = "paid-in-time", (1120, 700)
FIRST_S, EVERY_S, LAST_S = 1.5, 0.5, 4.0
# A clock that goes on is no new frame; a new line, or another page of the customer's, is.
LEAST_PIXELS = 1500


def is_new(frame: Image.Image, before: Image.Image) -> bool:
    changed = ImageChops.difference(frame, before).convert("L").point(lambda it: 255 * (it > 24))
    return sum(changed.histogram()[255:]) >= LEAST_PIXELS


def film(tab: Tab, playground: Playground, file: Path) -> None:
    """An animated WebP, each frame as long as it stood."""
    tab.emulate(STAGE, still=True)
    frames, began_s = [tab.picture(whole=False)], [time.monotonic() - FIRST_S]
    tab.click(f"#scene-{FILMED}")
    tab.until("document.querySelector('#story li')")
    while scene_of(playground)["state"] == "playing":
        if is_new(frame := tab.picture(whole=False), frames[-1]):
            frames.append(frame)
            began_s.append(time.monotonic())
        time.sleep(EVERY_S)
    tab.until("document.querySelector('#story .end')")
    frames.append(tab.picture(whole=False))
    began_s += [time.monotonic(), time.monotonic() + LAST_S]
    lasted_ms = [int(1000 * (end - begin)) for begin, end in itertools.pairwise(began_s)]
    others = {"save_all": True, "append_images": frames[1:], "duration": lasted_ms, "loop": 0}
    frames[0].save(file, quality=70, method=6, minimize_size=True, **others)
    assert file.stat().st_size < 500_000


def picture_all(tab: Tab, playground: Playground, shots: Path) -> None:
    """The workbench at the end of each scene: on a desk and on a phone, light and dark."""
    for name in tab.ask("[...document.querySelectorAll('[name=scene]')].map((it) => it.value)"):
        playground.press("scene", scene=name, quick="1")
        until(lambda: scene_of(playground)["state"] == "over", name, 120)
        tab.until("document.querySelector('#story .end')")
        for where, size in (("desk", DESK), ("phone", PHONE)):
            for theme in ("light", "dark"):
                tab.emulate(size, theme, still=True)
                tab.picture().save(shots / f"sandbox-{name}-{where}-{theme}.png")


def sandbox(browser: Browser, folder: Path, shots: Path, file: Path) -> None:
    playground = start_playground(folder)
    try:
        tab = browser.open(playground.chain, size=STAGE)
        tab.call("Emulation.setScrollbarsHidden", hidden=True)
        tab.go(f"{playground.chain}/")
        tab.until("document.getElementById('customer').dataset.page")
        film(tab, playground, file)
        picture_all(tab, playground, shots)
    finally:
        playground.stop()


# A shop after six weeks: its checkout on a phone, its till on a tablet, its month on a desk.

DAYS, ACCENT = 45, "#0b7a4b"


def sell(hosted: Hosted, amount: str, what: str) -> dict[str, Any]:
    """An invoice in euros, as the till makes it."""
    service, now = hosted.shop.service, hosted.clock()
    wanted = {"amount": Decimal(amount), "description": what, "expires_in_hours": Decimal(1)}
    details = load(NEW_PRICED_INVOICE, wanted) | {"tip": "0"}
    order = order_of(hosted.shop.merchant_id, details, "EUR")
    quoted = quote(service.db, service.prices, now, order)
    with service.db.write():
        return as_dict(new_invoice(service.db, service.settings.network, now, quoted))


def live_through(hosted: Hosted) -> None:
    chance = random.Random(7)
    hosted.clock.move(seconds=-DAYS * 86_400)
    for day in range(DAYS):
        times = sorted(chance.uniform(0, 28_000) for _ in range(chance.randint(1, 7)))
        times = times[:1] if day % 7 == 2 else times
        for before, at in itertools.pairwise([0, *times, 86_400]):
            hosted.clock.move(seconds=at - before)
            if at < 86_400:
                amount = chance.choice(["4.50", "9.00", "12.50", "18.00", "27.90", "42.00"])
                pay(hosted.shop, sell(hosted, amount, "Coffee"), USD="60000", EUR="52000")


def shot(browser: Browser, hosted: Hosted, size: tuple[int, int], path: str) -> Image.Image:
    """The visible part of a page, scaled to one height."""
    tab = browser.open(hosted.root)
    if path.startswith("/merchant"):
        log_in(tab, hosted)
    tab.emulate(size, still=True, scale=2)
    tab.call("Emulation.setScrollbarsHidden", hidden=True)
    assert tab.go(hosted.root + path) == 200
    tab.until("true")
    picture = tab.picture(whole=False)
    tab.close()
    width = picture.width * HEIGHT // picture.height
    return picture.resize((width, HEIGHT), Image.Resampling.LANCZOS)


def logo() -> bytes:
    """A cup, in the colour of the shop."""
    picture, file = Image.new("RGB", (96, 96), ACCENT), io.BytesIO()
    ImageDraw.Draw(picture).chord((24, 8, 72, 72), 0, 180, "#ffffff")
    picture.save(file, "PNG")
    return file.getvalue()


def front(browser: Browser, hosted: Hosted, pictures: Path) -> None:
    db, owner = hosted.shop.service.db, hosted.shop.merchant_id
    brand = {"name": "Harbour Roasters", "accent": ACCENT, "contact": "hello@roasters.example"}
    set_brand(db, owner, checked(logo(), **brand))
    set_currency(db, owner, "EUR")
    set_timezone(db, owner, "Europe/Berlin")
    live_through(hosted)
    order, sale = sell(hosted, "27.90", "Two bags of coffee"), sell(hosted, "12.50", "Cake")
    pages = [
        shot(browser, hosted, (390, 760), f"/pay/{order['id']}"),
        shot(browser, hosted, TABLET, f"/merchant/till/{sale['id']}"),
        shot(browser, hosted, DESK, "/merchant/month"),
    ]
    left = gap = 16
    width = sum(page.width + gap for page in pages) + gap
    whole = Image.new("RGB", (width, HEIGHT + 2 * gap), AROUND)
    for page in pages:
        whole.paste(page, (left, gap))
        left += page.width + gap
    whole.save(pictures / "shop.webp", quality=80, method=6)
    assert (pictures / "shop.webp").stat().st_size < 200_000
    checkout(browser, hosted, order, pictures / "checkout-waiting.png", (1024, 700), 1, "light")
    pay(hosted.shop, order, USD="60000", EUR="52000")
    checkout(browser, hosted, order, pictures / "checkout-paid.png", (390, 844), 1.5, "dark")


def checkout(
    browser: Browser,
    hosted: Hosted,
    order: dict[str, Any],
    file: Path,
    size: tuple[int, int],
    scale: float,
    theme: str,
) -> None:
    """An invoice's whole page, for the merchants' documents."""
    tab = browser.open(hosted.root, size=size, theme=theme, still=True, scale=scale)
    assert tab.go(f"{hosted.root}/pay/{order['id']}") == 200
    tab.until("document.documentElement.classList.contains('js')")
    tab.picture().save(file, optimize=True)
    tab.close()


def main(shots: Path, pictures: Path) -> None:
    checkout_states(shots, pictures / "checkout-states.webp")
    with (
        tempfile.TemporaryDirectory() as place,
        TickerServer() as ticker,
        open_hosted(Path(place), ticker, BTCPAY_MERCHANT_PAGES="on") as hosted,
        Browser(Path(place)) as browser,
    ):
        ticker.price("60000.00", eur="52000.00")
        front(browser, hosted, pictures)
        (folder := Path(place, "sandbox")).mkdir()
        sandbox(browser, folder, shots, pictures / "sandbox.webp")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
