"""The first page: what came in, what comes, what is wanted, how the service stands; and a month."""

from datetime import UTC, datetime, timedelta

from btcpay.backup.write import note_backup
from btcpay.chain.look_ahead import note_used_ahead
from btcpay.values.times import to_ms
from storage.queries import merchants, meta
from storage.sqlite import create_file
from tests.support.builders import pay
from tests.support.forge import forge
from tests.support.merchant_browser import ON, MerchantBrowser
from tests.support.payer import Page


def words(text):
    return " ".join(text.split())


def test_what_came_in_today_and_in_thirty_days(shop, browser):
    for days, *amounts in ((-30, 7), (1, 100), (27, 0.5), (1, 50, 30), (1, 20)):
        shop.clock.move(days=days)
        for amount in amounts:
            pay(shop, shop.invoice(amount))
    page = browser.page()
    assert words(page.texts["took-today"]).startswith("Received today $20.00 1 payment")
    assert "Yesterday: $80.00" in words(page.texts["took-today"])
    in_all = words(page.texts["took-in-all"])
    assert "$200.50 5 payments In the thirty days before: $7.00" in in_all
    days = words(page.texts["days"])
    assert days.index("20.00") < days.rindex("2 payments") < days.rindex("100.00")
    bars = [attrs for tag, attrs in page.tags if attrs.get("class") == "bar"]
    heights = [int(bar["height"]) for bar in bars]
    assert [(place, height) for place, height in enumerate(heights) if height] == [
        *(
            (0, 1000),
            (27, 10),
            (28, 800),
            (29, 200),
        )  # a day with any takings has a bar to see
    ]
    assert all(
        int(bar["y"]) == 1000 - height
        for bar, height in zip(bars, heights, strict=True)
    )


def test_an_account_that_somebody_else_uses_is_warned_of_until_its_address_is_behind(
    shop, browser
):
    (row,) = shop.service.db.rows(merchants.ALL)
    start = row.next_index
    note_used_ahead(shop.service.db, row, [start, start + 1], shop.clock())
    shop.invoice()
    warning = words(browser.page().texts["shared-account"])
    assert "Somebody else uses this shop's account" in warning
    assert f"number {start + 1} has been used already" in warning
    shop.invoice()
    assert "shared-account" not in browser.page().texts
    note_used_ahead(shop.service.db, row, [], shop.clock())
    assert "shared-account" not in browser.page().texts


def test_what_comes_is_one_line_for_each_invoice_at_its_own_price(shop, browser):
    invoice = shop.invoice(30, description="Table 7")
    for sats in (20_000, 10_000):
        pay(shop, invoice, sats, confirmed=False)
    page = browser.page()
    assert "$18.00 1 sale" in words(page.texts["comes"])
    line = words(page.texts["on-its-way"])
    assert line.count("Table 7") == 1 and "$18.00" in line
    assert f"invoices/{invoice['id']}" in page.source


def test_what_comes_in_two_currencies_is_two_sums(shop, browser, ticker):
    assert "$0.00 0 sales" in words(browser.page().texts["comes"])
    pay(shop, shop.invoice(30), 30_000, confirmed=False)
    ticker.price("60000.00", eur="50000.00")
    shop.clock.move(minutes=5)
    shop.sql("UPDATE merchant SET currency = 'EUR'")
    for _ in range(2):
        pay(shop, shop.invoice(30), 30_000, confirmed=False)
    assert "\u20ac30.00 $18.00 3 sales" in words(browser.page().texts["comes"])


def test_a_check_that_does_not_run_is_said_first(shop, browser):
    warning = "Payments are not being found"
    page = browser.page()
    assert warning in page.source and "blocktill doctor" in page.source
    meta.put_time(
        shop.service.db, meta.Key.CHECKED_MS, shop.clock() - timedelta(minutes=7.5)
    )
    meta.put(shop.service.db, meta.Key.PREVIEWS_LATE, "7")
    page = browser.page()
    assert "late" not in page.texts and warning not in page.source
    assert "7 open pages" in words(page.texts["service"])
    meta.put_time(
        shop.service.db, meta.Key.CHECKED_MS, shop.clock() - timedelta(minutes=15)
    )
    page = browser.page()
    assert warning not in page.source and "completed 15 minutes ago" in words(
        page.texts["late"]
    )
    shop.clock.move(minutes=1)
    assert warning in browser.page().source


def test_the_page_names_the_last_backup_where_it_is_late(
    shop, browser, clock, tmp_path
):
    page = browser.page()
    assert "Backup" not in page.texts["service"]  # it is among what is still to do
    assert "Download a backup" in page.texts["to-do"]
    shop.sql("UPDATE merchant SET created_ms = 0")  # no new shop any more
    assert browser.page().texts["service"].count("Never") == 1
    ended = forge().run(shop.environ, ["backup", "--quiet", str(tmp_path / "copy.db")])
    assert (ended.status, ended.output, ended.errors) == (0, "", "")
    assert "Backup" not in browser.page().texts["service"]
    clock.move(days=4)
    assert (
        "Backup" in (service := browser.page().texts["service"])
        and "4 days ago" in service
    )


def test_a_database_that_takes_no_note_is_backed_up_all_the_same(tmp_path):
    create_file(tmp_path / "strange.db")
    problem = note_backup(f"sqlite:///{tmp_path}/strange.db", datetime.now(UTC))
    assert problem == "no such table: meta"


def test_a_month_of_the_shops_zone_stands_beside_the_month_before(shop, browser):
    shop.sql("UPDATE merchant SET timezone = 'Asia/Tokyo'")
    for at, amount_usd in (
        (datetime(2031, 1, 31, 14, 59, tzinfo=UTC), 50),
        (
            datetime(2031, 1, 31, 15, 0, tzinfo=UTC),
            100,
        ),  # midnight of February in Tokyo
        (datetime(2031, 2, 28, 14, 59, tzinfo=UTC), 25),
        (datetime(2031, 2, 28, 15, 0, tzinfo=UTC), 7),  # March
    ):
        shop.clock.at = at
        pay(shop, shop.invoice(amount_usd))
    browser.log_in()
    page = browser.page("/month?month=2031-02")
    assert "February 2031 $125.00 2 payments" in words(page.texts["this-USD"])
    assert "January 2031 $50.00 1 payment" in words(page.texts["before-USD"])
    assert page.attributes["csv"]["href"].endswith("&from=2031-02-01&to=2031-02-28")
    bars = [attrs["height"] for _, attrs in page.tags if attrs.get("class") == "bar"]
    assert len(bars) == 28 and (bars[0], bars[27]) == ("1000", "250")
    assert "month=2031-01" in page.source
    assert 'rel="next" href="../merchant/month?month=2031-03"' in page.source
    for typed in ("", "2031-03", "2031-04", "2008-12", "x", "9999-99", "2031-03-01"):
        running = browser.page(f"/month?month={typed}")
        assert "March 2031 $7.00 1 payment" in words(running.texts["this-USD"]), typed
        assert (
            "So far" in running.texts["this-USD"] and 'rel="next"' not in running.source
        )


def test_the_months_begin_with_the_one_in_which_the_shop_began(shop, browser, clock):
    """That of its first payment, if a wrong clock had added the shop later."""
    began = clock.at = datetime(2026, 3, 31, 20, tzinfo=UTC)  # in Tokyo it is April
    shop.sql("UPDATE merchant SET timezone = 'Asia/Tokyo'")
    shop.sql(f"UPDATE merchant SET created_ms = {to_ms(began)}")  # noqa: S608
    clock.at = datetime(2026, 5, 15, tzinfo=UTC)
    browser.log_in()
    may = browser.page("/month")
    assert "April 2026" in may.texts["before-USD"] and 'rel="prev"' in may.source
    april = browser.page("/month?month=2026-04")
    assert "Nothing was received" in april.source
    assert 'rel="prev"' not in april.source and "before-USD" not in april.texts
    assert "before-USD" in browser.page("/month?month=2026-03").texts  # May
    clock.at = datetime(2026, 2, 15, tzinfo=UTC)
    pay(shop, shop.invoice())
    clock.at = datetime(2026, 5, 16, tzinfo=UTC)
    browser.log_in()
    february = browser.page("/month?month=2026-02")
    assert "1 payment" in february.texts["this-USD"]
    assert 'rel="prev"' not in february.source
    assert 'rel="prev"' in browser.page("/month?month=2026-03").source


def test_a_new_shop_is_told_what_is_left_to_do_until_it_is_done(open_shops):
    shop = open_shops(
        **ON,
        BLOCKTILL_SMTP_URL="smtp://127.0.0.1:9",
        BLOCKTILL_MAIL_FROM="shop@example.com",
    )
    browser = MerchantBrowser(shop).log_in()

    def left():
        return Page(browser.get().text).texts.get("to-do", "")

    tasks = {
        "currency and time zone": lambda: browser.post(
            "/settings/counting", currency="USD", timezone="America/New_York"
        ),
        "Enter your e-mail address": lambda: browser.post(
            "/settings/mail", address="me@harbour-roasters.com", language="en"
        ),
        "gap limit": lambda: browser.post("/settings/wallet", wallet_gap_limit="100"),
        "first payment": lambda: pay(shop, shop.invoice()),
        "Download a backup": lambda: note_backup(
            shop.service.settings.database_url, shop.clock()
        ),
    }
    if shop.service.db.is_server:
        del tasks["Download a backup"]
    while tasks:
        assert all(words in left() for words in tasks), left()
        words = next(iter(tasks))
        tasks.pop(words)()
        assert words not in left()
    assert left() == ""
    shop.sql("DELETE FROM meta WHERE name = 'backed_up_ms'")
    shop.clock.move(days=29)
    has_own_backup = not shop.service.db.is_server
    assert ("Download a backup" in left()) == has_own_backup
    shop.add_merchant("other")  # then a backup is not this merchant's to make
    assert ("ask whoever runs this service" in left()) == has_own_backup
    assert "Download a backup" not in left()
    shop.clock.move(days=2)
    assert left() == ""


def test_what_is_done_is_ticked(shop, browser):
    assert "ticks" not in browser.page().texts
    pay(shop, shop.invoice())
    page = browser.page()
    ticked = words(page.texts["ticks"])
    assert ticked == "Take a first payment"  # the till is only one way to take it
    assert "Take a first payment" not in page.texts["to-do"]
    assert words(page.texts["tasks"]).startswith("Still to do: ")


def test_a_shop_without_a_price_is_told_so(browser, ticker):
    ticker.status = 500
    page = browser.page()
    assert "the till cannot sell" in page.texts["no-price"]
    assert "Choose another currency" in page.texts["no-price"]  # this one may have none
    assert "open" in page.attributes["service"]
    assert "Please have a look" in page.texts["service"]


def test_the_service_is_one_line_while_all_is_well(shop, browser):
    assert "open" in browser.page().attributes["service"]  # nothing was checked yet
    meta.put_time(shop.service.db, meta.Key.CHECKED_MS, shop.clock())
    meta.put_time(shop.service.db, meta.Key.BACKED_UP_MS, shop.clock())
    shop.sql("UPDATE merchant SET wallet_gap_limit = 100")
    page = browser.page()
    assert "open" not in page.attributes["service"], page.texts["service"]
    assert words(page.texts["service"]).startswith("The service: All is well")


def test_a_price_that_is_late_is_not_said_to_be_missing(browser, ticker):
    with ticker.silent():
        assert "no-price" not in browser.page().texts


def test_a_month_without_payments_cannot_be_sent(shop, browser):
    assert "send" not in browser.page("/month").attributes
    pay(shop, shop.invoice())
    # While a month runs, the one before is sent.
    assert "send" not in browser.page("/month").attributes
    this_month = shop.clock().strftime("%Y-%m")
    shop.clock.move(days=31)
    browser.log_in()
    assert "send" in browser.page("/month").attributes
    assert "send" in browser.page(f"/month?month={this_month}").attributes
