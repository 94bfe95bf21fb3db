"""Length first: whoever reads a stranger's text asks how long it is before anything else.

tests/nightly/web/test_hostile_texts.py walks everything that a request can hold.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from btcpay.bitcoin.base58 import b58check_decode
from btcpay.bitcoin.wire import DecodeError
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants.secret import holds_secret
from btcpay.notify.mail.content import MailText
from btcpay.notify.mail.message import message_of
from btcpay.settings.mail_settings import Sender, checked_address
from btcpay.values.amounts import parse_amount
from btcpay.values.hosts import web_parts
from btcpay.web.admission import is_from_another_site
from btcpay.web.pages.forms import LONGEST_FIELD, limit_fields
from storage.queries.merchants import MailBrand
from tests.support.hostile import TEXTS, text_of
from tests.support.paths import PROJECT
from tests.support.payer import Page
from tests.support.processor_time import takes_less_than

MOST_S = 0.3  # of the processor, whatever else it does
READERS = {
    "an amount": lambda text: parse_amount(text, "USD"),
    "an e-mail address": checked_address,
    "an address of the web": web_parts,
    "an origin": lambda text: is_from_another_site(
        {"Origin": text}, "https://shop.example"
    ),
    "an extended key": b58check_decode,
    "a text that may be a secret": holds_secret,
}


@pytest.mark.parametrize("reader", READERS)
def test_reading_64_kb_costs_next_to_nothing_as(reader):
    for name in TEXTS:
        text = text_of(name, 65_000).decode()

        def read(text=text):
            with suppress(ValueError, DecodeError):
                READERS[reader](text)

        assert takes_less_than(MOST_S, read), name


def test_a_mail_with_the_worst_that_a_stranger_may_leave_costs_next_to_nothing():
    sender = Sender("Shop", "shop@example.com")
    at = datetime.now(UTC)
    for name in TEXTS:
        text = text_of(name, 2_000).decode("utf-8", "ignore")[:500]
        lines = [("Note", text), ("Name", text)]
        mail = MailText("en", text, [text], lines, ("Page", text))
        brand = MailBrand(text)

        def write(mail=mail, brand=brand):
            message_of(mail, brand, sender, "ada@example.com", "1", at).as_bytes()

        assert takes_less_than(MOST_S, write), name


def test_a_text_that_is_longer_than_any_may_be_comes_back_in_its_form_as_too_long(shop):
    link = shop.link(title="Tip jar")
    for length in (LONGEST_FIELD, LONGEST_FIELD + 1, 60_000):
        answer = shop.client.post(f"/link/{link['id']}", data={"amount": "a" * length})
        assert answer.status_code == 400 and "Enter an amount" in answer.text
        assert "a" * (LONGEST_FIELD + 1) not in answer.text


def test_a_long_text_is_not_read_as_if_it_had_ended_before(shop):
    link = shop.link(title="Tip jar")
    typed = "25" + " " * LONGEST_FIELD + "000"
    answer = shop.client.post(f"/link/{link['id']}", data={"amount": typed})
    assert answer.status_code == 400 and "Enter an amount" in answer.text
    assert limit_fields({"amount": typed})["amount"].split() == ["25", "…"]


def test_a_field_whose_name_is_longer_than_any_is_refused(shop):
    link = shop.link(title="Tip jar")
    answer = shop.client.post(
        f"/link/{link['id']}", data={"a" * (LONGEST_FIELD + 1): "1"}
    )
    assert answer.status_code == 400 and "could not be" in answer.text


def test_forms_are_read_in_one_place():
    """What goes round it would have no bound."""
    readers = {
        "parse_qs(": "web/pages/forms.py",
        "request.form": "parts/merchant_pages/visit.py",
    }
    for path in (PROJECT / "btcpay").rglob("*.py"):
        name = path.relative_to(PROJECT / "btcpay").as_posix()
        for call, where in readers.items():
            assert (
                call not in path.read_text()
                or name == where
                or name.startswith("sandbox/")
            )


def test_a_list_of_languages_that_no_browser_sends_is_not_read(shop):
    link = shop.link(title="Tip jar")
    for length, language in ((400, "de"), (8_000, "en")):
        accepted = {"Accept-Language": re.sub(",$", "", ("de," * length)[:length])}
        page = Page(shop.client.get(f"/link/{link['id']}", headers=accepted).text)
        assert page.tags[0][1]["lang"] == language and language in LANGUAGES
