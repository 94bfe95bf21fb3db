"""`python -m tests.support.store_pictures PICTURES`: what app stores show, 1440 by 900 pixels.

The pages are real, of the shop of pictures.py.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image

from btcpay.check.record import RunRecord
from btcpay.check.report import Report
from storage.queries import meta
from tests.support.browser import Browser
from tests.support.builders import TickerServer
from tests.support.hosted import Hosted, open_hosted
from tests.support.merchant_browser import log_in
from tests.support.pictures import furnish, require_font, sell

SIZE = (1440, 900)
COLOURS = 256  # of each picture: a third of the size


def take(browser: Browser, hosted: Hosted, path: str, file: Path) -> None:
    """Saves the upper part of a page, as the merchant sees it."""
    tab = log_in(browser.open(hosted.root), hosted)
    tab.emulate(size=SIZE, still=True)
    tab.call("Emulation.setScrollbarsHidden", hidden=True)
    tab.go(hosted.root + path)
    tab.until("true")
    picture = tab.picture(whole=False).convert("RGB")
    tab.close()
    few = picture.quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(file, optimize=True)


def note_that_all_is_well(hosted: Hosted) -> None:
    """As a check and a backup would, which do not run beside the service here."""
    db = hosted.shop.service.db
    now = hosted.clock()
    report = Report(has_tip=True, tip_asked_at=now, read_at=now)
    RunRecord().note(db, report, "yes", now)
    with db.write():
        meta.put_time(db, meta.Key.BACKED_UP_MS, now)


def main(pictures: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        TickerServer() as ticker,
        open_hosted(Path(place), ticker, BLOCKTILL_MERCHANT_PAGES="on") as hosted,
        Browser(Path(place)) as browser,
    ):
        ticker.price("60000.00", eur="52000.00")
        require_font(browser, hosted)
        furnish(hosted)
        note_that_all_is_well(hosted)
        order = sell(hosted, "27.90", "Two bags of coffee")
        sale = sell(hosted, "12.50", "Cake")
        shown = {
            "1-today": "/merchant",
            "2-till": f"/merchant/till/{sale['id']}",
            "3-checkout": f"/pay/{order['id']}",
            "4-month": "/merchant/month",
        }
        for name, path in shown.items():
            take(browser, hosted, path, pictures / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
