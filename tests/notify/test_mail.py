"""Mail to a real server: who is told of what, once, in which language, and what a fault costs."""

import re
import socket
import threading
import time
import tracemalloc
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from btcpay.merchants.branding import brand_columns
from btcpay.merchants.merchants import set_brand, set_mail
from btcpay.notify.delivery_queue import DeliveryCounts
from btcpay.notify.mail import smtp
from btcpay.notify.mail.replies import USUAL, Times
from btcpay.notify.outbox import Outbox, new_send
from btcpay.notify.outcome import ATTEMPT_S
from btcpay.settings.settings import read
from btcpay.values.times import to_ms
from storage.queries import invoices, meta
from storage.queries.meta import Key
from tests.support.builders import pay, until
from tests.support.mail_server import MailServer

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.filterwarnings("ignore:Requiring AUTH while"),
]
MAIL_SETTINGS = ("BLOCKTILL_SMTP_URL", "BLOCKTILL_MAIL_FROM")
SHOP = "owner@shop.example"
ADA = "ada@example.com"
LOGO = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 100


class Office:
    """A shop that wants mail, its mail server, and what sends between them."""

    def __init__(self, shop, server, clock):
        self.shop = shop
        self.server = server
        self.clock = clock
        self.outbox = self.new_outbox()
        meta.put_time(shop.service.db, Key.CHECKED_MS, clock())
        self.want(address=SHOP, receipts=1)
        self.run()

    def new_outbox(self, times=USUAL, **environ):
        settings = read(self.shop.environ | environ)
        return Outbox(
            self.shop.service.db, settings, self.clock, new_send(settings), times
        )

    def want(self, **change):
        set_mail(self.shop.service.db, self.shop.merchant_id, change, self.clock())

    def run(self, outbox=None, **options):
        meta.put_time(self.shop.service.db, Key.CHECKED_MS, self.clock())
        return (outbox or self.outbox).run(**options)

    def paid(self, amount_usd=25, **fields):
        invoice = self.shop.invoice(amount_usd, **fields)
        pay(self.shop, invoice)
        return invoice

    def rows(self):
        """The deliveries that were tried or given up."""
        columns = "receiver_id, attempts, next_ms IS NULL, delivered_ms IS NULL, answer"
        which = (
            "next_ms IS NULL OR tried_ms IS NOT NULL ORDER BY receiver_id, created_ms"
        )
        return self.shop.sql(f"SELECT {columns} FROM delivery WHERE {which}").fetchall()  # noqa: S608


@pytest.fixture
def offices(tmp_path, open_shops, clock):
    """Opens offices, whose servers are as told; `shop` is of its settings."""
    with ExitStack() as stack:

        def make(shop=None, **options):
            server = stack.enter_context(MailServer(tmp_path, **options))
            environ = {
                "BLOCKTILL_SMTP_URL": server.url,
                "BLOCKTILL_MAIL_FROM": "Mugs <pay@shop.example>",
            }
            return Office(open_shops(**environ | (shop or {})), server, clock)

        yield make


def test_a_merchant_and_a_customer_are_told_of_a_payment_once(offices):
    office = offices()
    invoice = office.paid(description="Two mugs", customer_email=ADA)
    assert office.run() == DeliveryCounts(2, 0)
    assert office.run() == DeliveryCounts(0, 0)
    to_shop, to_ada = sorted(
        office.server.taken, key=lambda mail: mail.to, reverse=True
    )
    assert (to_shop.to, to_ada.to) == ([SHOP], [ADA])
    assert to_shop.subject == "Invoice paid: $25.00"
    assert to_ada.subject == "Receipt from shop"
    for mail in (to_shop, to_ada):
        assert mail.sender == "pay@shop.example"
        assert str(mail.message["From"]) == "Mugs <pay@shop.example>"
        assert mail.message["Message-ID"].endswith("@shop.example>")
        for part in (mail.text, mail.html):
            assert (
                "Two mugs" in part
                and invoice["id"] in part
                and invoice["pay_url"] in part
            )
    assert to_shop.message["Message-ID"] != to_ada.message["Message-ID"]


def test_an_invoice_that_needs_a_human_is_told_with_the_reason(offices):
    office = offices()
    office.want(language="de")
    invoice = office.shop.invoice()
    pay(office.shop, invoice, 2 * invoice["amount_sats"])
    office.run()
    attention = next(mail for mail in office.server.taken if "klären" in mail.subject)
    assert attention.subject == "Eine Rechnung ist zu klären: 25,00 $ zu viel"
    assert "Es ist mehr eingegangen als gefordert." in attention.text
    assert f"blocktill invoice show {invoice['id']}" in attention.text
    assert 'lang="de"' in attention.html and "/merchant" not in attention.text


@pytest.mark.parametrize("kind", ["plain", "starttls"])
def test_a_logo_arrives_within_each_mail(kind, offices, monkeypatch):
    office = offices(kind=kind)
    monkeypatch.setenv("SSL_CERT_FILE", str(office.server.ca))
    db = office.shop.service.db
    set_brand(db, office.shop.merchant_id, brand_columns(LOGO, accent="#0b7a4b"))
    office.paid(customer_email=ADA)
    assert office.run() == DeliveryCounts(2, 0)
    for mail in office.server.taken:
        (image,) = [
            part
            for part in mail.message.walk()
            if part.get_content_type() == "image/png"
        ]
        assert image.get_content() == LOGO
        assert f'src="cid:{image["Content-ID"][1:-1]}"' in mail.html
        assert mail.html.count("<a ") == 1 and 'bgcolor="#0b7a4b"' in mail.html


def test_where_the_pages_are_on_a_merchants_mails_open_them(offices):
    office = offices({"BLOCKTILL_MERCHANT_PAGES": "on"})
    office.want(evening=1)
    invoice = office.shop.invoice()
    pay(office.shop, invoice, 2 * invoice["amount_sats"])
    office.clock.move(days=1)
    office.outbox.run()
    root = office.shop.service.settings.base_url
    links = {
        mail.subject.partition(":")[0]: mail.text.rstrip().rpartition("\n")[2]
        for mail in office.server.taken
    }
    page = f"{root}/merchant/invoices/{invoice['id']}"
    evening = links.keys() - {"Invoice paid", "Payments are not being found"}
    assert links["Invoice paid"] == links["An invoice needs your attention"] == page
    assert links["Payments are not being found"] == f"{root}/merchant"
    assert {links[subject] for subject in evening} == {f"{root}/merchant", page}
    assert "on the server" not in "".join(mail.text for mail in office.server.taken)


# The setting beside it, and who gets a mail.
UNWANTED = {
    "a merchant who wants none": ({"address": None, "receipts": 0}, []),
    "a merchant who wants none, of customers who may have receipts": (
        {"address": None},
        [ADA],
    ),
    "customers who are to have none": ({"receipts": 0}, [SHOP]),
}


@pytest.mark.parametrize(("change", "recipients"), UNWANTED.values(), ids=UNWANTED)
def test_nobody_is_told_who_does_not_want_it(change, recipients, offices):
    office = offices()
    office.want(**change)
    office.paid(customer_email=ADA)
    office.run()
    assert [mail.to[0] for mail in office.server.taken] == recipients


@pytest.mark.parametrize("missing", ["", "BLOCKTILL_MAIL_FROM", "BLOCKTILL_SMTP_URL"])
def test_nothing_leaves_without_settings(missing, offices):
    office = offices(dict.fromkeys([missing] if missing else MAIL_SETTINGS, ""))
    office.paid(customer_email=ADA)
    assert office.run() == DeliveryCounts()
    assert office.server.sessions == 0


def test_the_first_check_with_mail_on_sends_what_happened_since_an_address_was_given(
    offices,
):
    office = offices({"BLOCKTILL_SMTP_URL": ""})
    office.want(address=None, receipts=0)
    office.paid(customer_email=ADA)
    office.want(address=SHOP)
    office.paid(30)
    office.run(office.new_outbox(BLOCKTILL_SMTP_URL=office.server.url))
    assert office.server.subjects == ["Invoice paid: $30.00"]


@pytest.mark.parametrize(
    ("seconds", "sent"), [(0, 1), (1, 0)], ids=["after four days", "a second later"]
)
def test_mail_that_is_switched_on_again_sends_what_is_not_older_than_four_days(
    seconds, sent, offices
):
    office = offices({"BLOCKTILL_SMTP_URL": ""})
    office.paid()
    office.clock.move(days=4, seconds=seconds)
    again = office.new_outbox(BLOCKTILL_SMTP_URL=office.server.url)
    assert office.run(again) == DeliveryCounts(sent, 0)
    assert {bool(row[2]) for row in office.rows()} == {True}


# While two mails wait: what happens, and who still gets one.
MEANWHILE = {
    "the merchant wants no mail any more": (lambda office, _: office.want(address=None), ADA),
    "the invoice is open again": (lambda office, id: office.shop.service.db.run(invoices.REOPEN,
        id=id), SHOP),
    "the customer's address is erased": (lambda office, _:
        office.shop.sql("UPDATE invoice SET customer_email = NULL"), SHOP),
}  # fmt: skip


@pytest.mark.parametrize("case", MEANWHILE)
def test_what_waits_is_sent_as_things_stand_then(case, offices):
    happen, recipient = MEANWHILE[case]
    office = offices()
    office.server.answers["RCPT"] = "451 4.7.1 come again"
    invoice = office.paid(customer_email=ADA)
    office.run()
    office.server.answers.clear()
    happen(office, invoice["id"])
    office.clock.move(minutes=10)
    office.run()
    assert [mail.to for mail in office.server.taken] == [[recipient]]


@pytest.mark.parametrize(
    "address", ["ada@example.com\r\nBcc: eve@example.com", "no address", ""]
)
def test_what_a_customer_gave_that_is_no_address_gets_nothing(address, offices):
    office = offices()
    office.paid(customer_email=address)
    office.run()
    assert [mail.to for mail in office.server.taken] == [[SHOP]]
    assert office.server.taken[0].message["Bcc"] is None


# Faults of the server, and whether the mail is tried again.
REFUSALS = {
    "the customer for now": (
        {f"RCPT {ADA}": "450 4.2.1 full"},
        "refused: 450 4.2.1",
        False,
    ),
    "the customer for ever": (
        {f"RCPT {ADA}": "550 5.1.1 <ada@example.com>"},
        "550 5.1.1",
        True,
    ),
    "the mail for now": ({"DATA": "451 4.3.0 later"}, "refused: 451 4.3.0", False),
    "the mail for ever": ({"DATA": "554 spam"}, "refused: 554", True),
    "the sender for ever": (
        {"MAIL": "553 5.7.1 not yours"},
        "refused: 553 5.7.1",
        False,
    ),
}


@pytest.mark.parametrize(
    ("answers", "message", "is_final"), REFUSALS.values(), ids=REFUSALS
)
def test_a_mail_that_its_server_refuses_is_tried_again_or_given_up(
    answers, message, is_final, offices, caplog
):
    office = offices()
    office.want(address=None)
    office.server.answers = dict(answers)
    office.paid(customer_email=ADA)
    assert office.run() == DeliveryCounts(0, 1)
    ((recipient, attempts, is_over, is_unsent, answer),) = office.rows()
    assert (recipient, attempts, bool(is_over), bool(is_unsent)) == (
        "receipt_1",
        1,
        is_final,
        True,
    )
    assert message in answer and ADA not in answer and ADA not in caplog.text
    office.server.answers = {}
    office.clock.move(minutes=1)
    assert office.run().delivered == (0 if is_final else 1)


def test_one_customer_who_is_refused_keeps_nobody_else_waiting(offices):
    office = offices()
    office.server.answers[f"RCPT {ADA}"] = "550 5.1.1 unknown"
    office.paid(customer_email=ADA)
    office.paid(customer_email="bob@example.com")
    assert office.run() == DeliveryCounts(3, 1)


def test_after_three_days_a_mail_is_given_up(offices):
    office = offices()
    office.server.answers["DATA"] = "451 later"
    office.paid()
    for minutes in [5] * 12 + [60] * 95:
        office.run()
        office.clock.move(minutes=minutes)
    ((_, attempts, is_over, is_unsent, answer),) = office.rows()
    assert attempts == 10 and is_over and is_unsent and answer == "refused: 451"


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_server_that_hangs_has_its_time_and_no_more(scheme, offices):
    times = Times(connect_s=0.5, answer_s=0.5)
    office = offices()
    office.paid(customer_email=ADA)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        began_s = time.monotonic()
        assert office.run(
            office.new_outbox(times, BLOCKTILL_SMTP_URL=url)
        ) == DeliveryCounts(0, 1)
        assert time.monotonic() - began_s < 30  # the usual times would be sixty
    assert {row[4] for row in office.rows()} == {"does not answer in time"}


def test_a_session_that_comes_after_its_run_is_used_by_no_other(
    offices, released, monkeypatch
):
    office = offices()
    open_session = smtp.open_session
    office.paid()
    monkeypatch.setattr("btcpay.notify.outbox.AROUND_MAIL_S", 0.5)
    with monkeypatch.context() as slow:
        slow.setattr(
            smtp,
            "open_session",
            lambda *to: released.wait(60) and open_session(*to[:2], USUAL),
        )
        assert office.run(office.new_outbox(Times(mail_s=0))) == DeliveryCounts(0, 1)
    released.set()
    until(lambda: office.server.taken, "the mail that comes late")
    office.clock.move(minutes=61)
    assert office.run() == DeliveryCounts(1, 0)
    assert office.server.sessions == 2


CHATTER = {
    "a greeting without end": b"220-hello\r\n",
    "a line without end": b"2" * 100,
    "a byte now and then": b"",
}


@pytest.mark.parametrize("piece", CHATTER.values(), ids=CHATTER)
def test_what_a_mail_server_says_is_bounded(piece, offices):
    times = Times(mail_s=1)
    office = offices()
    office.paid()

    def talk(listening):
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            while True:
                connection.sendall(piece * 1000 or b"2")
                time.sleep(0 if piece else 0.1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=talk, args=(listening,), daemon=True).start()
        url = f"smtp://127.0.0.1:{listening.getsockname()[1]}"
        tracemalloc.start()
        began_s = time.monotonic()
        assert office.run(
            office.new_outbox(times, BLOCKTILL_SMTP_URL=url)
        ) == DeliveryCounts(0, 1)
        assert time.monotonic() - began_s < 30
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()


def test_a_slow_server_takes_what_it_can_and_the_rest_waits_untried(offices):
    office = offices()
    office.server.pause_s = 0.8
    for _ in range(5):
        office.paid()
    result = office.run(run_s=ATTEMPT_S + 3)
    assert 1 <= result.delivered < 5 and result.failed == 0
    office.server.pause_s = 0
    assert office.run().delivered == 5 - result.delivered
    assert {row[1] for row in office.rows()} == {1}


KINDS = {
    "STARTTLS and login": {"kind": "starttls", "login": True},
    "TLS and login": {"kind": "tls", "login": True},
    "login on this machine": {"kind": "plain", "login": True},
    "STARTTLS alone": {"kind": "starttls"},
    "TLS alone": {"kind": "tls"},
}


@pytest.mark.slow
@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_a_mail_is_delivered_by_every_way_into_the_server(
    options, offices, monkeypatch
):
    office = offices(**options)
    monkeypatch.setenv("SSL_CERT_FILE", str(office.server.ca))
    office.paid()
    assert office.run() == DeliveryCounts(1, 0)
    (mail,) = office.server.taken
    assert mail.is_secret == (options["kind"] != "plain")
    assert mail.user == ("shop@example.com" if options.get("login") else None)


NO_WAYS_IN = {
    "a certificate of nobody's": ("starttls", "", "certificate that is not valid"),
    "TLS by a certificate of nobody's": ("tls", "", "certificate that is not valid"),
    "a wrong password": ("starttls", "hunter3", "does not let us in: 535 5.7.8"),
}


@pytest.mark.parametrize(
    ("kind", "password", "message"), NO_WAYS_IN.values(), ids=NO_WAYS_IN
)
def test_a_way_that_fails_hides_the_password(
    kind, password, message, offices, monkeypatch, caplog
):
    office = offices(kind=kind, login=True)
    url = office.server.url
    if password:
        monkeypatch.setenv("SSL_CERT_FILE", str(office.server.ca))
        url = f"smtp://shop%40example.com:{password}@127.0.0.1:{office.server.port}"
    office.paid()
    assert office.run(office.new_outbox(BLOCKTILL_SMTP_URL=url)) == DeliveryCounts(0, 1)
    (row,) = office.rows()
    assert message in row[4] and not row[2]
    assert "hunter" not in row[4] + caplog.text


def test_a_check_that_is_overdue_is_told_once_a_day_of_the_merchants(offices):
    office = offices()
    office.shop.sql("UPDATE merchant SET timezone = 'Asia/Kathmandu'")
    office.clock.move(minutes=59)
    office.outbox.run()
    assert office.server.taken == []
    office.clock.at = office.clock.at.replace(hour=19)  # there the next day has begun
    office.clock.move(days=1)
    for _ in range(20):
        office.outbox.run()
        office.clock.move(hours=1)
    assert office.server.subjects == ["Payments are not being found"]
    assert "blocktill doctor" in office.server.taken[0].text
    assert "UTC+5:45" in office.server.taken[0].text
    office.clock.move(hours=5)
    office.outbox.run()
    assert len({mail.message["Message-ID"] for mail in office.server.taken}) == 2
    office.run()
    office.clock.move(minutes=59)
    office.outbox.run()
    assert len(office.server.taken) == 2


def test_in_a_zone_that_is_not_known_here_the_overdue_mail_is_refused_and_the_run_goes_on(
    offices,
):
    office = offices()
    office.shop.sql("UPDATE merchant SET timezone = 'Europe/Atlantis'")
    office.clock.move(hours=2)
    office.outbox.run()
    ((_, _, is_over, is_unsent, answer),) = office.rows()
    assert is_over and is_unsent
    assert "cannot be sent: 'Europe/Atlantis' is not a time zone" in answer


HERE = {"Sec-Fetch-Site": "same-origin"}


def ask_receipt(office, invoice, email, **headers):
    path = f"/pay/{invoice['id']}/receipt"
    return office.shop.client.post(path, data={"email": email}, headers=HERE | headers)


def offers_receipt(office, invoice):
    return "mail-receipt" in office.shop.client.get(f"/pay/{invoice['id']}").text


def test_a_payer_has_the_receipt_sent_once_where_the_shop_sends_none_by_itself(offices):
    office = offices()
    office.want(receipts=0, address=None)
    office.shop.sql(
        "INSERT INTO brand (merchant_id, contact) VALUES (1, 'hello@shop.example')"
    )
    invoice = office.paid()
    unpaid = office.shop.invoice()
    assert offers_receipt(office, invoice) and not offers_receipt(office, unpaid)
    for refused, status in (
        ("nonsense", 400),
        ("", 400),
        ("a@b.example\nBcc: x@y.example", 400),
    ):
        assert ask_receipt(office, invoice, refused).status_code == status, refused
    abroad = {"Sec-Fetch-Site": "cross-site"}
    assert ask_receipt(office, invoice, ADA, **abroad).status_code == 403
    ask_receipt(office, unpaid, ADA)
    asked = ask_receipt(office, invoice, f" {ADA} ")
    assert asked.status_code == 303
    said = office.shop.client.get(f"/pay/{invoice['id']}?done=mailed").text
    assert (
        "on its way to you" in said
        and ADA not in said
        and not offers_receipt(office, invoice)
    )
    ask_receipt(office, invoice, "eve@example.com")
    office.run(), office.run()
    (mail,) = office.server.taken
    assert (
        mail.to == [ADA]
        and invoice["id"] in mail.text
        and "hello@shop.example" in mail.text
    )
    assert "Price of one bitcoin: $60,000.00" in mail.text
    assert office.shop.get(f"/invoices/{invoice['id']}").json["customer_email"] == ADA
    assert office.shop.get(f"/invoices/{unpaid['id']}").json["customer_email"] is None
    office.paid(customer_email="bob@example.com")
    office.run()
    assert len(office.server.taken) == 1  # the merchant's own receipts stay off


def test_no_receipt_is_offered_without_a_mail_server_or_for_an_address_that_would_be_erased(
    offices, open_shops, clock
):
    office = offices({"BLOCKTILL_EMAIL_RETENTION_DAYS": "2"})
    invoice = office.paid()
    clock.move(days=1.9)
    assert offers_receipt(office, invoice)
    clock.move(days=0.2)
    assert not offers_receipt(office, invoice)
    ask_receipt(office, invoice, ADA)
    assert office.shop.get(f"/invoices/{invoice['id']}").json["customer_email"] is None
    plain = open_shops()
    pay(plain, invoice := plain.invoice())
    assert "mail-receipt" not in plain.client.get(f"/pay/{invoice['id']}").text


def test_an_evening_is_told_once_in_the_shops_zone_also_after_an_outage(offices):
    office = offices()
    office.shop.sql("UPDATE merchant SET timezone = 'Asia/Kathmandu', created_ms = 0")
    office.clock.at = datetime(2026, 11, 26, 16, 0, tzinfo=UTC)  # 21:45 there
    office.want(evening=1)
    office.run()  # the evening before: the first comes at once
    office.paid(400), office.paid(12)
    office.run(), office.server.taken.clear()
    for minutes in (10, 5, 600):  # 21:55, 22:00, the next morning
        office.clock.move(minutes=minutes)
        office.run(), office.run(office.new_outbox())
    (mail,) = office.server.taken
    assert (
        mail.subject == "Today: $412.00 in 2 payments; nothing needs your attention"
        and mail.to == [SHOP]
    )
    assert "Nov 25: $0.00 · 0 payments" in mail.text
    body = mail.text + mail.html.partition("<body")[2]
    assert (mail.text.count("$412.00"), body.count("$412.00")) == (1, 2)
    part = office.shop.invoice(30, expires_in_hours=1)
    office.clock.move(hours=2)
    pay(office.shop, part)
    office.shop.sql("DELETE FROM delivery WHERE substr(about, 1, 7) <> 'evening'")
    office.server.taken.clear()
    office.want(language="de")
    office.clock.move(days=2)  # nothing ran for two evenings
    office.run(), office.run()
    assert office.server.subjects == [
        "28. Nov.: 0,00 $ in 0 Zahlungen; 1 Rechnung zu klären"
    ]
    office.want(evening=0)
    office.clock.move(days=1)
    office.run()
    assert len(office.server.taken) == 1


def test_what_is_sold_after_the_mail_of_an_evening_is_in_the_next_one(offices):
    office = offices()
    office.shop.sql("UPDATE merchant SET created_ms = 0")
    office.clock.at = datetime(2026, 11, 26, 22, 0, tzinfo=UTC)
    office.want(evening=1)
    office.paid(20)
    office.run()
    office.paid(80)
    office.run(), office.server.taken.clear()
    office.clock.move(days=1)
    office.run()
    (mail,) = [mail for mail in office.server.taken if "payments;" in mail.subject]
    assert (
        "Today: 0 payments; nothing needs" in mail.text
        and "Nov 26: $100.00 · 2 payments" in mail.text
    )


# When the shop was made; the day before that each mail tells of, until the evening of the 27th.
BORN = {
    "in the afternoon": ((26, 15), [[], ["Nov 26"]]),
    "a minute before the evening": ((26, 21, 59), [[], ["Nov 26"]]),
    "when the evening has come": ((26, 22), [["Nov 26"]]),
    "after midnight": ((27, 0, 30), [[]]),
}


@pytest.mark.parametrize(("born", "expected"), BORN.values(), ids=BORN)
def test_no_mail_tells_of_an_evening_before_the_shop_existed(born, expected, offices):
    office = offices()
    zone = ZoneInfo("America/Lima")
    born_at = datetime(2026, 11, *born, tzinfo=zone)
    office.shop.sql(
        f"UPDATE merchant SET timezone = 'America/Lima', created_ms = {to_ms(born_at)}"  # noqa: S608
    )
    office.want(evening=1)
    evenings = [datetime(2026, 11, day, 22, tzinfo=zone) for day in (26, 27)]
    for at in [born_at, *(at for at in evenings if at > born_at)]:
        office.clock.at = at.astimezone(UTC)
        office.run()
    assert all("Today: " in mail.subject for mail in office.server.taken)
    before = [re.findall(r"^Nov \d+", mail.text, re.M) for mail in office.server.taken]
    assert before == expected


def test_an_evening_that_could_not_be_sent_is_dropped_and_one_says_what_fails(offices):
    office = offices()
    office.want(evening=1)
    office.run(), office.server.taken.clear()
    office.server.answers["MAIL"] = "451 4.3.0 no network"
    office.clock.move(days=1)
    office.run()
    office.server.answers.clear()
    office.clock.move(days=1)
    office.run()
    (subject,) = office.server.subjects
    assert subject.endswith("nothing needs your attention")
    office.server.taken.clear()
    office.clock.move(days=1)
    office.outbox.run()
    (found,) = [subject for subject in office.server.subjects if "payments;" in subject]
    assert found.endswith("payments are not being found")


def test_a_check_that_is_complete_again_is_not_told_as_overdue(offices):
    office = offices()
    office.server.answers["MAIL"] = "451 4.3.0 no network either"
    office.clock.move(hours=2)
    office.outbox.run()
    assert office.rows()[0][4] == "refused: 451 4.3.0"
    office.server.answers.clear()
    office.clock.move(minutes=5)
    office.run()
    assert office.server.taken == [] and office.rows() == []
