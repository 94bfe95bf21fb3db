"""The mail server in Settings: set, tested, used by the next check; its password is never shown."""

import json
import threading

import pytest

from btcpay.merchants.merchants import set_mail
from btcpay.notify.outbox import Outbox, new_send
from btcpay.settings.settings import read
from storage.queries import mail_servers, meta
from tests.support.builders import new_xpub, pay, until
from tests.support.fake_esplora import Terminal
from tests.support.mail_server import PASSWORD, USER, MailServer
from tests.support.merchant_browser import ON, MerchantBrowser
from tests.support.payer import Page
from tests.support.slow_mail import SlowMail

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.filterwarnings("ignore:Requiring AUTH while"),
]
PATH = "/settings/mail-server"
FIELDS = {
    "host": "Mail.Seller.de",
    "encryption": "starttls",
    "port": "2525",
    "user": "shop",
    "password": "s3cret words",
    "sender": "tea@seller.de",
    "sender_name": "Tea & Co",
}
ROW = (
    1,
    "mail.seller.de",
    2525,
    0,
    "shop",
    "s3cret words",
    "Tea & Co",
    "tea@seller.de",
)
OF_ENVIRONMENT = {
    "BLOCKTILL_SMTP_URL": "smtps://user:hunter2@mail.platform.net",
    "BLOCKTILL_MAIL_FROM": "pay@platform.net",
}


def stored(shop):
    return [tuple(row) for row in shop.sql("SELECT * FROM mail_server").fetchall()]


def of_server(server, **changes):
    """The fields that reach a server of the test."""
    return {
        "host": "127.0.0.1",
        "encryption": "starttls",
        "port": str(server.port),
        "sender": "tea@seller.de",
    } | changes


def save(browser, **fields):
    return browser.post(PATH, **fields)


def saved(browser, **fields):
    answer = save(browser, **fields)
    assert answer.status_code == 303, Page(answer.text).texts
    return answer


def problems(answer):
    assert answer.status_code == 400
    texts = Page(answer.text).texts
    return {id.removesuffix("-problem") for id in texts if id.endswith("-problem")}


def test_it_is_stored_shown_without_its_password_and_removed(browser):
    assert "mail-server-link" in browser.page("/settings/mail").texts
    saved(browser, **FIELDS)
    assert stored(browser.shop) == [ROW]
    page = browser.page(PATH)
    for name, text in (
        ("host", "mail.seller.de"),
        ("port", "2525"),
        ("user", "shop"),
        ("sender", "tea@seller.de"),
        ("sender_name", "Tea & Co"),
    ):
        assert page.values[name] == text
    assert "value" not in page.attributes["password"]
    assert page.attributes["password"]["type"] == "password"
    assert page.texts["place"] == "mail.seller.de:2525 · STARTTLS · tea@seller.de"
    for path in (PATH, "/settings", ""):
        assert "s3cret" not in browser.get(path).text
    assert "every backup contains it" in page.texts["password-hint"]
    for _ in range(2):
        assert browser.post(f"{PATH}/remove").status_code == 303
    assert stored(browser.shop) == []


USUAL = {"tls": 465, "starttls": 587}


@pytest.mark.parametrize("encryption", USUAL)
def test_an_empty_port_is_the_usual_one_of_the_encryption(browser, encryption):
    saved(browser, **FIELDS | {"encryption": encryption, "port": ""})
    row = browser.shop.service.db.get(mail_servers.GET)
    assert (row.port, row.is_tls) == (USUAL[encryption], int(encryption == "tls"))


def test_an_ipv6_address_is_taken_with_brackets_and_without(browser):
    for host in ("[2001:db8::1]", "2001:DB8:0::1"):
        saved(browser, **FIELDS | {"host": host})
        page = browser.page(PATH)
        assert page.values["host"] == "2001:db8::1"
        assert page.texts["place"].startswith("[2001:db8::1]:2525 ")


WRONG = {
    "no host": ({"host": ""}, "host"),
    "a URL as the host": ({"host": "smtps://mail.seller.de"}, "host"),
    "a host with its port": ({"host": "mail.seller.de:465"}, "host"),
    "another spelling of an address": ({"host": "127.1"}, "host"),
    "a port of 0": ({"port": "0"}, "port"),
    "a port of 65536": ({"port": "65536"}, "port"),
    "a port in letters": ({"port": "smtp"}, "port"),
    "a user with a line break": ({"user": "shop\r\nRCPT TO:<x@y.net>"}, "user"),
    "a user who is too long": ({"user": "u" * 1001}, "user"),
    "a password outside ASCII": ({"password": "Grüße"}, "password"),
    "no sender": ({"sender": ""}, "sender"),
    "a sender who is no address": ({"sender": "Tea & Co"}, "sender"),
    "a sender's name in two lines": (
        {"sender_name": "Tea\r\nBcc: x@y.net"},
        "sender_name",
    ),
    "a sender's name that is too long": ({"sender_name": "T" * 201}, "sender_name"),
    "a password without its user": ({"user": ""}, "user"),
    "a user without a password": ({"password": ""}, "password"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_stored(browser, case):
    change, field = WRONG[case]
    answer = save(browser, **FIELDS | change)
    assert problems(answer) - {"password"} == {field} - {"password"}
    assert "password" in problems(answer)
    assert "s3cret" not in answer.text
    page = Page(answer.text)
    assert page.values["sender"] == (FIELDS | change)["sender"]
    assert stored(browser.shop) == []


KEPT = {
    "the sender": {"sender": "other@seller.de"},
    "the encryption": {"encryption": "tls"},
    "the same host in capitals": {"host": "MAIL.SELLER.DE"},
}
NOT_KEPT = {
    "the host": {"host": "mail.thief.net"},
    "the port": {"port": "587"},
    "the user": {"user": "thief"},
}


@pytest.mark.parametrize("case", [*KEPT, *NOT_KEPT])
def test_an_empty_password_keeps_the_stored_one_for_the_same_host_port_and_user(
    browser, case
):
    saved(browser, **FIELDS)
    change = (KEPT | NOT_KEPT)[case]
    answer = save(browser, **FIELDS | {"password": ""} | change)
    if case in KEPT:
        assert answer.status_code == 303
        assert browser.shop.service.db.get(mail_servers.GET).password == "s3cret words"
    else:
        assert problems(answer) == {"password"}
        assert stored(browser.shop) == [ROW]


def test_a_server_without_a_user_forgets_the_password(browser):
    saved(browser, **FIELDS)
    saved(browser, **FIELDS | {"user": "", "password": ""})
    row = browser.shop.service.db.get(mail_servers.GET)
    assert (row.user_name, row.password) == ("", "")


DOUBTFUL = {
    "a domain without a dot": "owner@example",
    "a name of the examples": "owner@example.com",
    "a name below an ending of the examples": "owner@shop.example",
    "a name for tests": "owner@shop.test",
}
FORMS = {
    "the sender": (PATH, "sender", FIELDS),
    "the merchant": ("/settings/mail", "address", {"language": "en"}),
}


@pytest.mark.parametrize("address", DOUBTFUL.values(), ids=DOUBTFUL)
@pytest.mark.parametrize("form", FORMS)
def test_an_address_that_gets_no_mail_is_questioned_once(browser, address, form):
    path, field, fields = FORMS[form]
    fields = fields | {field: address}
    answer = browser.post(path, **fields)
    assert field in problems(answer)
    page = Page(answer.text)
    assert address.partition("@")[2] in page.texts[f"{field}-problem"]
    assert page.values["sure"] == address
    other = browser.post(path, **fields | {"sure": "owner@seller.de"})
    assert field in problems(other)
    assert browser.post(path, **fields, sure=address).status_code == 303
    assert address in browser.get(path).text


def test_who_does_not_own_the_whole_service_finds_no_such_page(browser):
    shop = browser.shop
    saved(browser, **FIELDS)
    till_only = MerchantBrowser(shop).log_in(till_only=True)
    assert till_only.client.get(f"/merchant{PATH}").status_code == 403
    token = browser.token()
    for path in (PATH, f"{PATH}/test", f"{PATH}/remove"):
        assert browser.post(path, "another", **FIELDS).status_code == 403
    shop.add_merchant("other")
    assert "mail-server-link" not in browser.page("/settings/mail").texts
    assert PATH not in browser.page("/settings").source
    assert browser.get(PATH).status_code == 404
    for path in (PATH, f"{PATH}/test", f"{PATH}/remove"):
        answer = browser.post(path, token, **FIELDS | {"host": "mail.thief.net"})
        assert answer.status_code == 404
    assert stored(shop) == [ROW]
    assert not shop.service.has_mail()


def test_what_the_environment_names_is_shown_tried_and_not_changed(open_shops):
    shop = open_shops(**ON, **OF_ENVIRONMENT)
    browser = MerchantBrowser(shop).log_in()
    page = browser.page(PATH)
    assert page.texts["place"] == "mail.platform.net:465 · TLS · pay@platform.net"
    assert "BLOCKTILL_SMTP_URL" in page.texts["in-use"]
    assert "save" not in page.attributes and "test" in page.attributes
    assert "hunter2" not in page.source and "user" not in page.values
    assert save(browser, **FIELDS).status_code == 409
    assert stored(shop) == []


def test_one_of_the_two_settings_is_no_server_and_leaves_none_to_set(open_shops):
    environ = {"BLOCKTILL_MAIL_FROM": "pay@platform.net"}
    browser = MerchantBrowser(open_shops(**ON, **environ)).log_in()
    page = browser.page(PATH)
    assert "BLOCKTILL_SMTP_URL" in page.source and "save" not in page.attributes
    assert browser.post(f"{PATH}/test", to="a@seller.de").status_code == 404


@pytest.fixture
def server(tmp_path):
    with MailServer(tmp_path, login=True) as started:
        yield started


def try_out(browser, to="owner@seller.de"):
    answer = browser.post(f"{PATH}/test", to=to)
    assert answer.status_code == 200
    return Page(answer.text)


def test_a_test_mail_arrives_and_the_page_shows_what_the_server_answered(
    browser, server
):
    saved(browser, **of_server(server, user=USER, password=PASSWORD))
    set_mail(
        browser.shop.service.db, 1, {"address": "me@seller.de"}, browser.shop.clock()
    )
    assert browser.page(PATH).values["to"] == "me@seller.de"
    server.answers["DATA"] = "250 2.0.0 Ok: queued as <b>4711</b>"
    page = try_out(browser)
    assert page.attributes["outcome"]["role"] == "status"
    assert "accepted the test mail to owner@seller.de" in page.texts["outcome"]
    assert page.texts["answer"] == "250 2.0.0 Ok: queued as <b>4711</b>"
    del server.answers["DATA"]
    try_out(browser)
    (mail,) = server.taken
    assert (mail.sender, mail.to, mail.user) == (
        "tea@seller.de",
        ["owner@seller.de"],
        USER,
    )
    assert mail.subject == "A test mail from your shop"
    assert "your shop can send mails" in mail.text


def test_a_wrong_password_and_a_refusal_are_shown_in_the_servers_words(browser, server):
    saved(browser, **of_server(server, user=USER, password="not that"))
    page = try_out(browser)
    assert page.attributes["outcome"]["role"] == "alert"
    assert "does not accept this user and password" in page.texts["outcome"]
    assert page.texts["answer"].startswith("535 5.7.8")
    assert "not that" not in page.source
    saved(browser, **of_server(server, user=USER, password=PASSWORD))
    server.answers["RCPT"] = "550 5.1.1 <owner@seller.de> is nobody"
    page = try_out(browser)
    assert page.texts["answer"] == "550 5.1.1 <owner@seller.de> is nobody"
    assert "has refused the mail" in page.texts["outcome"]
    assert server.taken == []


def test_what_is_no_address_gets_no_test_mail(browser, server):
    saved(browser, **of_server(server))
    answer = browser.post(f"{PATH}/test", to="owner")
    assert problems(answer) == {"to"} and server.sessions == 0


def test_one_test_mail_is_sent_at_a_time(browser):
    with SlowMail() as slow:
        threading.Thread(target=slow.serve_forever, daemon=True).start()
        greeted = threading.Event()
        released = threading.Event()

        def greet():
            greeted.set()
            released.wait(20)

        slow.greet = greet
        place = {"host": "127.0.0.1", "port": slow.url.rpartition(":")[2]}
        saved(browser, **place, encryption="starttls", sender="tea@seller.de")
        token = browser.token()
        other = MerchantBrowser(browser.shop).log_in()
        pages = []
        waiting = threading.Thread(
            target=lambda: pages.append(
                browser.post(f"{PATH}/test", token, to="a@seller.de")
            )
        )
        waiting.start()
        assert greeted.wait(20)
        assert "just being sent" in try_out(other).texts["outcome"]
        released.set()
        waiting.join()
        assert "250 taken" in Page(pages[0].text).texts["answer"]
        until(lambda: len(slow.taken) == 1, "the one test mail")
        slow.shutdown()


def test_the_next_run_sends_through_it_and_what_asks_for_mail_follows(browser, server):
    shop = browser.shop
    set_mail(
        shop.service.db, 1, {"address": "me@seller.de", "receipts": 1}, shop.clock()
    )
    settings = read(shop.environ)
    outbox = Outbox(shop.service.db, settings, shop.clock, new_send(settings))

    def run():
        meta.put_time(shop.service.db, meta.Key.CHECKED_MS, shop.clock())
        shop.clock.move(hours=1)
        outbox.run()

    def page_of(invoice):
        return Page(shop.client.get(f"/pay/{invoice['id']}").text)

    def login_forms():
        return Page(shop.client.get("/merchant/login").text).attributes

    paid = shop.invoice(customer_email="ada@seller.de")
    pay(shop, paid)
    nameless = shop.invoice()
    pay(shop, nameless)
    run()
    assert "email" not in page_of(nameless).values
    assert "mail-link" not in login_forms()
    assert "Set up a mail server" in browser.page().texts["to-do"]
    saved(browser, **of_server(server, user=USER, password=PASSWORD))
    run()
    assert {mail.to[0] for mail in server.taken} == {"me@seller.de", "ada@seller.de"}
    assert "email" in page_of(nameless).values
    assert "mail-link" in login_forms()
    assert "Set up a mail server" not in browser.page().texts["to-do"]
    browser.post(f"{PATH}/remove")
    sent = len(server.taken)
    pay(shop, shop.invoice(customer_email="ada@seller.de"))
    run()
    assert len(server.taken) == sent


INVALID = {
    "sender_name": "Shop\r\nBcc: ada@seller.de",
    "sender_address": "tea@seller.de>",
    "host": "mail seller",
    "password": "s3crét",
}


@pytest.mark.parametrize("column", INVALID)
def test_what_a_changed_backup_has_stored_stops_no_other_delivery(
    browser, server, column
):
    shop = browser.shop
    set_mail(
        shop.service.db, 1, {"address": "me@seller.de", "receipts": 1}, shop.clock()
    )
    saved(browser, **of_server(server, user=USER, password=PASSWORD))
    shop.sql(f"UPDATE mail_server SET {column} = '{INVALID[column]}'")  # noqa: S608
    settings = read(shop.environ)
    outbox = Outbox(shop.service.db, settings, shop.clock, new_send(settings))
    pay(shop, shop.invoice(customer_email="ada@seller.de"))
    meta.put_time(shop.service.db, meta.Key.CHECKED_MS, shop.clock())
    shop.clock.move(hours=1)
    outbox.run()
    assert browser.post(f"{PATH}/test", to="ada@seller.de").status_code == 404
    assert not server.taken
    assert browser.get(PATH).status_code == 200
    saved(browser, **of_server(server, user=USER, password=PASSWORD))
    outbox.run()
    assert {mail.to[0] for mail in server.taken} == {"me@seller.de", "ada@seller.de"}


def test_the_doctor_says_that_a_stored_server_is_invalid(open_tills, server):
    till = open_tills(**ON)
    saved(MerchantBrowser(till.shop).log_in(), **of_server(server))
    till.shop.sql("UPDATE mail_server SET host = 'mail seller'")
    out, _ = Terminal(till).run("doctor", "--json")
    assert "the one in Settings is invalid" in out


def test_a_check_and_the_doctor_use_it_and_never_show_its_password(open_tills, server):
    till = open_tills(**ON)
    browser = MerchantBrowser(till.shop).log_in()
    saved(browser, **of_server(server, user=USER, password=PASSWORD))
    _, errors = Terminal(till).run("merchant", "mail", "shop", "me@seller.de")
    assert "nothing is sent" not in errors
    Terminal(till).run("check")
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    Terminal(till).run("check")
    assert [mail.to for mail in server.taken] == [["me@seller.de"]]

    def row():
        out, _ = Terminal(till).run("doctor", "--json")
        assert PASSWORD not in out and "hunter2" not in out
        (found,) = [one for one in json.loads(out) if one["name"] == "mail server"]
        return found

    assert row()["sentence"] == "127.0.0.1 takes mail from tea@seller.de"
    till.shop.sql("UPDATE mail_server SET password = 'other'")
    assert "does not let us in: 535" in row()["sentence"]
    words = ("merchant", "add", "other", "--yes", "--skip", "0", "--xpub", new_xpub())
    assert "No mail is sent from now on" in Terminal(till).run(*words)[1]
    words = ("merchant", "add", "third", *words[3:-1], new_xpub())
    assert "No mail is sent" not in Terminal(till).run(*words)[1]
    assert "only while there is one merchant" in row()["sentence"]
    Terminal(till).run("check")
    assert len(server.taken) == 1
