"""A month of the merchant's: its sums in the shop's zone, beside the month before."""

from datetime import UTC, datetime

from builders import pay


def words(text):
    return " ".join(text.split())


def test_a_month_of_the_shops_zone_stands_beside_the_month_before(shop, browser):
    shop.sql("UPDATE merchant SET timezone = 'Asia/Tokyo'")
    for at, amount_usd in (
        (datetime(2031, 1, 31, 14, 59, tzinfo=UTC), 50),
        (datetime(2031, 1, 31, 15, 0, tzinfo=UTC), 100),  # midnight of February in Tokyo
        (datetime(2031, 2, 28, 14, 59, tzinfo=UTC), 25),
        (datetime(2031, 2, 28, 15, 0, tzinfo=UTC), 7),  # March
    ):
        shop.clock.at = at
        pay(shop, shop.invoice(amount_usd))
    browser.log_in()
    page = browser.page("/month?month=2031-02")
    assert "February 2031 $125.00 2 payments" in words(page.texts["this-USD"])
    assert "150% more than the month before" in words(page.texts["this-USD"])
    assert "January 2031 $50.00 1 payment" in words(page.texts["before-USD"])
    assert page.attributes["csv"]["href"].endswith("?from=2031-02-01&to=2031-02-28")
    bars = [attrs["height"] for _, attrs in page.tags if attrs.get("class") == "bar"]
    assert len(bars) == 28 and (bars[0], bars[27]) == ("1000", "250")
    assert "month=2031-01" in page.source and "month=2031-03" in page.source
    for typed in ("", "2031-03", "2031-04", "2008-12", "x", "9999-99", "2031-03-01"):
        running = browser.page(f"/month?month={typed}")
        assert "March 2031 $7.00 1 payment" in words(running.texts["this-USD"]), typed
        assert "So far" in running.texts["this-USD"] and "month=2031-04" not in running.source
    assert "Nothing was received" in browser.page("/month?month=2009-01").source
