"""A link's button, pressed again: after a payment, twice at once, by many, and by other sites."""

import pytest
from werkzeug.datastructures import Headers

from btcpay.values.times import to_ms
from btcpay.web.admission import is_from_another_site
from storage.queries import invoices
from tests.support.builders import at_once, pay, until
from tests.support.payer import Page, count, made, press

pytestmark = pytest.mark.both_databases

# After a payment: a tablet on a counter serves one customer after another


@pytest.mark.parametrize("confirmed", [False, True], ids=["waiting", "in a block"])
@pytest.mark.parametrize("amount_sats", [None, 600], ids=["whole", "part"])
def test_who_comes_after_a_payment_gets_an_address_of_their_own(
    shop, confirmed, amount_sats
):
    link = shop.link(amount_usd=5)
    client = shop.client
    first = made(press(client, link))
    pay(shop, shop.get(f"/invoices/{first}").json, amount_sats, confirmed=confirmed)
    assert open_here(client, link) is None
    second = made(press(client, link))
    assert second != first and shop.get(f"/invoices/{second}").json["status"] == "open"
    assert open_here(client, link) == second  # to which nothing has come


def open_here(client, link):
    """The invoice that the link's page says is still to be paid in this browser."""
    page = Page(client.get(f"/link/{link['id']}").text)
    href = page.attributes.get("continue", {}).get("href")
    return href and href.removeprefix("../pay/")


def test_whoever_pays_is_not_counted_for_the_next_one(open_shops):
    """So that a tablet on a counter serves any number of customers in an hour."""
    limits = {
        "BLOCKTILL_LINK_INVOICES_PER_VISITOR": "1",
        "BLOCKTILL_LINK_OPEN_INVOICES": "1",
    }
    shop = open_shops(**limits)
    link = shop.link(amount_usd=5)
    client = shop.client
    for _ in range(3):
        invoice_id = made(press(client, link))
        pay(shop, shop.get(f"/invoices/{invoice_id}").json, confirmed=False)
    made(press(client, link))
    assert press(client, link).status_code == 429  # nothing has come to the last one
    assert count(shop) == 4


def test_one_payment_frees_one_invoice_and_no_more(open_shops):
    """Also for presses at once, each with another amount, so that none is a copy of another."""
    shop = open_shops(BLOCKTILL_LINK_INVOICES_PER_VISITOR="1")
    link = shop.link()
    first = press(shop.client, link, "5")
    pay(shop, shop.get(f"/invoices/{made(first)}").json, confirmed=False)
    headers = {
        "Cookie": first.headers["Set-Cookie"].partition(";")[0]
    }  # sent again and again

    def again(amount):
        client = shop.app.test_client(use_cookies=False)
        return press(client, link, amount, headers=headers)

    statuses = at_once(6, lambda number: again(f"{5 + number}").status_code)
    assert sorted(statuses) == [303] + [429] * 5 and count(shop) == 2
    free = f"{5 + statuses.index(303)}"
    assert made(again(free)) == made(again(free)) and again("20").status_code == 429
    assert count(shop) == 2


def test_payments_that_each_vanish_after_the_next_press_pass_no_limit(open_shops):
    """A waiting payment that is replaced by one to the next address costs next to nothing."""
    limits = {
        "BLOCKTILL_LINK_INVOICES_PER_VISITOR": "1",
        "BLOCKTILL_LINK_OPEN_INVOICES": "3",
    }
    shop = open_shops(**limits)
    link = shop.link(amount_usd=5)
    client = shop.client
    for _ in range(4):
        invoice_id = made(press(client, link))
        shop.sql("UPDATE output SET vanished_ms = first_seen_ms + 1")
        pay(shop, shop.get(f"/invoices/{invoice_id}").json, 600, confirmed=False)
    assert press(client, link).status_code == 429


def test_money_that_vanished_was_seen_all_the_same_and_frees_nothing(open_shops):
    shop = open_shops(BLOCKTILL_LINK_INVOICES_PER_VISITOR="1")
    link = shop.link(amount_usd=5)
    client = shop.client
    invoice_id = made(press(client, link))
    assert open_here(client, link) == invoice_id
    pay(shop, shop.get(f"/invoices/{invoice_id}").json, confirmed=False)
    shop.sql("UPDATE output SET vanished_ms = first_seen_ms + 1")
    assert open_here(client, link) is None
    assert press(client, link).status_code == 429


def token(client, link):
    """The form's hidden token, by which it makes one invoice however often it is sent."""
    return Page(client.get(f"/link/{link['id']}").text).attributes["press"]["value"]


def send(client, link, press, amount=""):
    return client.post(f"/link/{link['id']}", data={"amount": amount, "press": press})


def test_one_form_sent_twice_makes_one_invoice_without_any_cookie(shop):
    link = shop.link()
    other = shop.link()
    form = token(shop.client, link)
    first = made(send(shop.client, link, form, "5"))
    assert made(send(shop.client, link, form, "5")) == first and form not in first
    assert made(send(shop.client, link, token(shop.client, link), "5")) != first
    assert made(send(shop.client, link, form, "6")) != first
    assert made(send(shop.client, other, form, "5")) != first
    for no_token in ("", "x" * 10_000, "\u00e9'\x00"):
        one, two = (made(send(shop.client, link, no_token, "5")) for _ in range(2))
        assert one != two
    assert count(shop) == 4 + 2 * 3


def test_one_form_sent_eight_times_at_once_makes_one_invoice_and_one_more_once_that_is_paid(
    shop,
):
    link = shop.link(amount_usd=5)
    form = token(shop.client, link)
    (first,) = set(at_once(8, lambda _: made(send(shop.client, link, form))))
    assert count(shop) == 1
    pay(shop, shop.get(f"/invoices/{first}").json, confirmed=False)
    assert made(send(shop.client, link, form)) != first


@pytest.mark.parametrize("copies", [2, 8])
def test_the_copies_of_a_press_count_once_and_none_is_refused(open_shops, copies):
    """A double click with the last invoice that this visitor may make in an hour."""
    shop = open_shops(BLOCKTILL_LINK_INVOICES_PER_VISITOR="2")
    link = shop.link()
    for already_made in (0, 1):
        form = token(shop.client, link)
        answers = at_once(
            copies, lambda _, form=form: send(shop.client, link, form, "5")
        )
        assert [answer.status_code for answer in answers] == [303] * copies
        assert len({made(answer) for answer in answers}) == 1
        assert count(shop) == already_made + 1
    assert send(shop.client, link, token(shop.client, link), "5").status_code == 429


def test_a_form_that_is_changed_each_time_counts_each_time(open_shops):
    shop = open_shops(BLOCKTILL_LINK_INVOICES_PER_VISITOR="3")
    link = shop.link()
    form = token(shop.client, link)
    answers = at_once(8, lambda number: send(shop.client, link, form, f"{5 + number}"))
    assert sorted(answer.status_code for answer in answers) == [303] * 3 + [429] * 5
    assert count(shop) == 3


def test_a_press_that_a_full_link_refuses_counts_nothing(open_shops):
    limits = {
        "BLOCKTILL_LINK_INVOICES_PER_VISITOR": "2",
        "BLOCKTILL_LINK_OPEN_INVOICES": "1",
    }
    shop = open_shops(**limits)
    link = shop.link()
    other = shop.link()
    made(press(shop.client, link, "5"))
    for _ in range(3):
        assert press(shop.client, link, "5").status_code == 429
    made(press(shop.client, other, "5"))


def from_(address):
    return {"environ_base": {"REMOTE_ADDR": address}}


def crowd(shop, link, presses):
    """So many presses, each from a network of its own."""
    return [
        made(press(shop.client, link, **from_(f"198.51.100.{number}")))
        for number in range(presses)
    ]


def look_at(shop, invoice_id):
    shop.client.get(f"/pay/{invoice_id}")
    now_ms = to_ms(shop.clock())
    db = shop.service.db
    until(lambda: db.get(invoices.WHOLE, id=invoice_id).asked_ms == now_ms, "the note")


@pytest.mark.parametrize(
    ("expiry_min", "open_s"), [("60", 600), ("5", 300)], ids=["nobody looks", "overdue"]
)
def test_unpaid_invoices_close_a_link_until_nobody_looks_or_they_are_overdue(
    open_shops, expiry_min, open_s
):
    limits = {
        "BLOCKTILL_LINK_OPEN_INVOICES": "3",
        "BLOCKTILL_LINK_INVOICE_EXPIRY_MIN": expiry_min,
    }
    shop = open_shops(**limits)
    link = shop.link(amount_usd=5)
    crowd(shop, link, 3)
    shop.clock.move(seconds=open_s - 1)
    closed = press(shop.client, link)
    assert closed.status_code == 429 and closed.headers["Retry-After"] == "1"
    shop.clock.move(seconds=1)
    made(press(shop.client, link))


def test_an_invoice_that_somebody_still_looks_at_counts(open_shops):
    shop = open_shops(BLOCKTILL_LINK_OPEN_INVOICES="2")
    link = shop.link(amount_usd=5)
    watched, _ = crowd(shop, link, 2)
    shop.clock.move(minutes=9)
    look_at(shop, watched)
    shop.clock.move(minutes=1)
    made(press(shop.client, link))  # in place of the one that nobody looks at
    closed = press(shop.client, link)
    assert closed.status_code == 429 and closed.headers["Retry-After"] == "540"
    shop.clock.move(minutes=9)
    made(press(shop.client, link))


def test_presses_at_once_do_not_pass_the_limit_together(open_shops):
    shop = open_shops(BLOCKTILL_LINK_OPEN_INVOICES="3")
    link = shop.link(amount_usd=5)

    def once(number):
        return press(shop.client, link, **from_(f"198.51.100.{number}")).status_code

    assert sorted(at_once(8, once)) == [303] * 3 + [429] * 5 and count(shop) == 3


HERE = "https://pay.example.com"
OF_OTHERS = {
    "a form": {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    "a form that hides its origin": {"Sec-Fetch-Site": "cross-site"},
    "a twin": {"Sec-Fetch-Site": "same-site", "Origin": "https://www.example.com"},
    "the browser knows better": {"Sec-Fetch-Site": "cross-site", "Origin": HERE},
    "an old browser, another site": {"Origin": "https://evil.example"},
    "an old browser, a sandboxed frame": {"Origin": "null"},
    "an old browser, without TLS": {"Origin": "http://pay.example.com"},
    "an old browser, another port": {"Origin": f"{HERE}:8443"},
    "an origin that is none": {"Origin": ""},
    "an origin that cannot be read": {"Origin": "https://["},
    "an origin of 64 kB": {"Origin": "https://" + "\xe9" * 65_536},
}


def test_a_press_from_another_site_makes_nothing_and_asks_to_be_made_here(open_shops):
    shop = open_shops(
        BLOCKTILL_BASE_URL=f"{HERE}/till", BLOCKTILL_LINK_INVOICES_PER_VISITOR="1"
    )
    link = shop.link(amount_usd=5)
    refused = press(shop.client, link, headers=OF_OTHERS["a form"])
    assert refused.status_code == 403 and count(shop) == 0
    assert "Set-Cookie" not in refused.headers
    page = Page(refused.text)
    assert "Another site" in page.texts["problem"] and "submit" in page.attributes
    # nothing was counted
    made(press(shop.client, link, headers=OF_OURS["the page itself"]))


OF_OURS = {
    "the page itself": {"Sec-Fetch-Site": "same-origin", "Origin": HERE},
    "the page itself, of any name it has": {"Sec-Fetch-Site": "same-origin"},
    "without referrers": {"Sec-Fetch-Site": "same-origin", "Origin": "null"},
    "a reload by hand": {"Sec-Fetch-Site": "none"},
    "an old browser": {"Origin": HERE},
    "behind a proxy": {"Origin": HERE, "Host": "127.0.0.1:8000"},
    "one that says nothing": {},
}


@pytest.mark.parametrize(
    "base_url", [HERE, f"{HERE}:443/till", "https://PAY.example.com"]
)
def test_what_a_browser_says_of_who_sent_a_form(base_url):
    for headers, is_another in ((OF_OTHERS, True), (OF_OURS, False)):
        for case, sent in headers.items():
            assert is_from_another_site(Headers(sent), base_url) is is_another, case


@pytest.mark.parametrize(
    "base_url", ["https://straße.de/till", "https://xn--strae-oqa.de:443"]
)
def test_an_old_browsers_origin_is_its_host_by_idna_2008(base_url):
    own = "https://xn--strae-oqa.de"
    other = "https://strasse.de"
    assert not is_from_another_site(Headers({"Origin": own}), base_url)
    assert is_from_another_site(Headers({"Origin": other}), base_url)
