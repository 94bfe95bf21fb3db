"""`merchant mail`, the mail of a real `blocktill check`, and what the doctor says of it."""

import pytest

from btcpay.health.doctor.receivers import mail_server
from btcpay.health.doctor.shop import Shop
from btcpay.notify.mail.server import HOW_TO_SET
from btcpay.settings import settings
from tests.support.builders import Clock
from tests.support.fake_esplora import Terminal
from tests.support.findings import found
from tests.support.mail_server import PASSWORD, MailServer

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while")
FROM = {"BLOCKTILL_MAIL_FROM": "pay@shop.example"}


@pytest.fixture
def server(tmp_path):
    with MailServer(tmp_path) as started:
        yield started


def mail(till, *words, **environ):
    (row,) = Terminal(till).json("merchant", "mail", "shop", *words)
    return {name: value for name, value in row.items() if name != "merchant"}


def test_what_a_merchant_wants_is_set_kept_and_shown(till):
    nothing = {"address": None, "receipts": False, "evening": False, "language": "en"}
    assert mail(till) == nothing
    assert mail(till, "--receipts", "--language", "de") == nothing | {
        "receipts": True,
        "language": "de",
    }
    whole = {
        "address": "owner@shop.example", "receipts": True, "evening": False, "language": "de"
    }  # fmt: skip
    assert mail(till, "owner@shop.example") == whole
    assert mail(till) == whole
    assert mail(till, "off", "--receipts") == whole | {"address": None}
    assert mail(till, "off") == nothing | {"language": "de"}


def test_what_is_no_address_and_a_shop_without_a_mail_server_are_told(till):
    words = ("merchant", "mail", "shop")
    _, message = Terminal(till).run(
        *words, "a@example.com\nBcc: b@example.com", status=1
    )
    assert "is not an address such as" in message and "\nBcc" not in message
    _, message = Terminal(till).run(*words, "owner@shop.example")
    assert f"nothing is sent until there is a mail server: {HOW_TO_SET}" in message
    assert (
        "is the address right? No mail from outside arrives at shop.example" in message
    )
    _, message = Terminal(till).run(*words)
    assert "nothing is sent" not in message
    _, message = Terminal(till).run(*words, "owner@harbour-roasters.com")
    assert "is the address right" not in message


def test_a_check_sends_and_a_dead_mail_server_changes_nothing_for_it(till, server):
    environ = FROM | {"BLOCKTILL_SMTP_URL": server.url}
    Terminal(till).run(
        "merchant", "mail", "shop", "owner@shop.example", "--receipts", **environ
    )
    Terminal(till).run("check", **environ)
    for url, expected in (("smtp://127.0.0.1:1", 0), (server.url, 4)):
        invoice = till.shop.invoice(customer_email="ada@example.com")
        till.pay(invoice)
        till.mine()
        out, errors = Terminal(till).run(
            "check", **environ | {"BLOCKTILL_SMTP_URL": url}
        )
        assert f"{invoice['id']} is paid" in out
        assert len(server.taken) == expected
        assert ("mail server 127.0.0.1 could not be spoken to" in errors) == (
            not expected
        )
    assert {one.to[0] for one in server.taken} == {
        "owner@shop.example",
        "ada@example.com",
    }


DOCTOR = {
    "a server that lets us in": ({}, "green", "127.0.0.1 takes mail from pay@shop.example"),
    "nobody there": ({"BLOCKTILL_SMTP_URL": "smtp://127.0.0.1:1"}, "yellow", "Connection refused"),
    "no sender": ({"BLOCKTILL_MAIL_FROM": ""}, "yellow", "only one of BLOCKTILL_SMTP_URL and"),
    "a wrong password": ({"BLOCKTILL_SMTP_URL":
        "smtp://shop%40example.com:wrong-word@127.0.0.1:PORT"}, "yellow",
        "does not let us in: 535"),
}  # fmt: skip


@pytest.mark.parametrize(("environ", "colour", "sentence"), DOCTOR.values(), ids=DOCTOR)
def test_the_doctor_tries_the_mail_server(environ, colour, sentence, tmp_path):
    with MailServer(tmp_path, login=True) as server:
        environ = FROM | {"BLOCKTILL_SMTP_URL": server.url} | environ
        environ["BLOCKTILL_SMTP_URL"] = environ["BLOCKTILL_SMTP_URL"].replace(
            "PORT", str(server.port)
        )
        shop = Shop(settings.read(environ), environ, Clock(), lambda _: 0)
        (finding,) = mail_server(shop, None)
    assert server.taken == []
    assert (finding.colour, sentence in finding.sentence) == (colour, True), finding
    for secret in (PASSWORD, "wrong-word", "hunter2"):
        assert secret not in str(finding)


def test_the_doctor_tells_of_mail_that_nobody_can_send(till):
    Terminal(till).run("merchant", "mail", "shop", "owner@shop.example")
    (row,) = [row for row in Terminal(till).json("doctor") if row["name"] == "mail"]
    assert (row["colour"], row["remedy"]) == ("yellow", HOW_TO_SET)


def test_the_doctor_counts_the_mails_that_wait(till):
    Terminal(till).run("merchant", "mail", "shop", "owner@shop.example")
    environ = FROM | {"BLOCKTILL_SMTP_URL": "smtp://127.0.0.1:1"}
    assert found(till, **environ)["mail"].sentence == "none waits"
    till.confirm(till.shop.invoice())
    finding = found(till, **environ)["mail"]
    assert (finding.colour, finding.sentence) == ("green", "1 wait, none for long")
