"""A login link by mail: to the merchant's own address alone, once in ten minutes, whoever asks."""

import re

import pytest

from btcpay.merchants.merchants import set_mail
from btcpay.notify.outbox import Outbox, new_send
from btcpay.settings.settings import read
from btcpay.values.times import to_ms
from btcpay.web import rate_limits
from storage.queries import deliveries, meta
from tests.support.builders import at_once, until
from tests.support.databases import about_sqlite
from tests.support.mail_server import MailServer
from tests.support.merchant_browser import FROM_THIS_SITE, ON, MerchantBrowser
from tests.support.payer import Page
from tests.support.statements import statements

OWNER = "owner@shop.example"
pytestmark = pytest.mark.both_databases


@pytest.fixture
def server(tmp_path):
    with MailServer(tmp_path) as server:
        yield server


@pytest.fixture
def shop(open_shops, server):
    mail = {"BLOCKTILL_SMTP_URL": server.url, "BLOCKTILL_MAIL_FROM": "pay@shop.example"}
    shop = open_shops(**ON, **mail)
    set_mail(shop.service.db, shop.merchant_id, {"address": OWNER}, shop.clock())
    return shop


def ask(shop, address=OWNER, **headers):
    """As the page's form does."""
    sent = {"data": {"address": address}, "headers": FROM_THIS_SITE | headers}
    return shop.client.post("/merchant/login", **sent)


def asked(shop):
    """The times at which a link was asked for."""
    found = shop.sql(
        "SELECT created_ms FROM delivery WHERE about = 'login' ORDER BY receiver_id"
    )
    return [row[0] for row in found.fetchall()]


def send(shop):
    """A run of the outbox, after a check of this moment."""
    meta.put_time(shop.service.db, meta.Key.CHECKED_MS, shop.clock())
    settings = read(shop.environ)
    Outbox(shop.service.db, settings, shop.clock, new_send(settings)).run()


def link_in(mail):
    return re.search(r"/merchant/login/\w+", mail.text)[0]


def test_the_login_page_mails_a_link_that_logs_in(shop, server):
    page = Page(shop.client.get("/merchant").text)
    assert {"mail-link", "address"} <= page.attributes.keys()
    assert page.attributes["mail-link"]["action"] == "merchant/login"
    answer = ask(shop, " Owner@Shop.example ")
    assert (answer.status_code, answer.headers["Location"]) == (
        303,
        "../merchant/login/mailed",
    )
    assert (
        "another one after ten minutes"
        in shop.client.get("/merchant/login/mailed").text
    )
    until(lambda: asked(shop), "the wish to be noted")
    send(shop)
    (mail,) = server.taken
    assert mail.to == [OWNER] and mail.subject == "Log in to your shop"
    assert "shop" in mail.text and "If you did not ask for it" in mail.text
    browser = MerchantBrowser(shop)
    assert browser.client.post(link_in(mail), headers=FROM_THIS_SITE).status_code == 303
    assert browser.get().status_code == 200
    assert shop.client.post(link_in(mail), headers=FROM_THIS_SITE).status_code == 410


def test_whoever_asks_gets_the_same_answer(shop, server):
    known = ask(shop)
    for address in (
        "nobody@shop.example",
        "",
        "x" * 5000,
        "a@b.example, owner@shop.example",
        "\0",
    ):
        answer = ask(shop, address)
        assert (answer.status_code, answer.text) == (303, known.text), address
        assert list(answer.headers.keys()) == list(known.headers.keys())
    until(lambda: asked(shop), "the wish to be noted")
    assert len(asked(shop)) == 1
    send(shop)
    assert [mail.to for mail in server.taken] == [[OWNER]]


@about_sqlite
def test_the_answer_waits_for_nothing_of_the_database(shop):
    for address in (OWNER, "nobody@shop.example"):
        with statements(shop) as run:
            assert ask(shop, address).status_code == 303
        assert run == [], address


def test_a_login_link_is_mailed_once_in_ten_minutes_and_again_after_them(shop, server):
    first = to_ms(shop.clock())
    ask(shop)
    until(lambda: asked(shop) == [first], "the first wish to be noted")
    send(shop)
    shop.clock.move(minutes=10, milliseconds=-1)
    shop.service.db.run(deliveries.ASK_LOGIN, id=OWNER, at=to_ms(shop.clock()))
    assert asked(shop) == [first]
    send(shop)
    assert len(server.taken) == 1
    shop.clock.move(milliseconds=1)
    ask(shop)
    until(lambda: asked(shop) == [first + 600_000], "the second wish to be noted")
    send(shop)
    one, two = server.taken
    assert link_in(one) != link_in(two)
    assert one.message["Message-ID"] != two.message["Message-ID"]


def test_however_many_ask_at_once_each_merchant_of_the_address_gets_one_link(
    shop, server
):
    other = shop.add_merchant("other")
    third = shop.add_merchant("third")
    for merchant_id, address in ((other, OWNER), (third, "else@shop.example")):
        set_mail(shop.service.db, merchant_id, {"address": address}, shop.clock())
    db = shop.service.db
    at = to_ms(shop.clock())

    def once(number):
        db.run(deliveries.ASK_LOGIN, id=OWNER, at=at + number)
        db.close()

    at_once(8, once)
    assert len(asked(shop)) == 2
    shop.clock.move(seconds=1)
    send(shop)
    send(shop)
    assert [mail.to for mail in server.taken] == [[OWNER], [OWNER]]
    shown = [shop.client.get(link_in(mail)).text for mail in server.taken]
    assert {text.partition("<bdi>")[2].split("<")[0] for text in shown} == {
        "shop",
        "other",
    }


def test_a_link_that_could_not_be_sent_for_an_hour_is_not_sent_any_more(shop, server):
    shop.service.db.run(deliveries.ASK_LOGIN, id=OWNER, at=to_ms(shop.clock()))
    shop.clock.move(hours=1)
    send(shop)
    assert server.taken == [] and asked(shop) == []


def test_a_mailed_link_counts_in_the_window_of_its_visitor_and_no_other_site_asks(shop):
    assert ask(shop, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    shop.clock.move(seconds=61)
    limit = rate_limits.VISITS.limit
    found = [ask(shop, "nobody@shop.example").status_code for _ in range(limit + 1)]
    assert found == [303] * limit + [429]


def test_a_mailed_link_is_offered_where_mail_is_set_up_and_nobody_is_logged_in(
    shop, open_shops
):
    assert "mail-link" in Page(shop.client.get("/merchant/login/x").text).attributes
    assert "mail-link" in Page(shop.client.get("/merchant/links/new").text).attributes
    without = open_shops(**ON)
    assert "mail-link" not in Page(without.client.get("/merchant").text).attributes
