"""A mail's text becomes one mail of two parts; nothing that is said in it becomes anything else."""

from datetime import UTC, datetime
from email import message_from_bytes, policy
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from btcpay.languages.catalogs import LANGUAGES
from btcpay.notify.mail import shop_texts, texts
from btcpay.notify.mail.mailto import mail_link
from btcpay.notify.mail.message import MailText, message_of
from btcpay.notify.mail.texts import InvoiceNews
from btcpay.settings.mail_settings import Sender
from btcpay.settlement.attention import REASONS
from storage.models import Invoice
from storage.statement import blank, replace

AT = datetime(2026, 11, 22, 7, 0, tzinfo=UTC)
SENDER = Sender("My shop", "shop@example.com")
HEADERS = {
    *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version"),
    "Content-Type",
}


def sent(mail, sender=SENDER):
    """The mail as whoever gets it reads it."""
    raw = message_of(mail, sender, "ada@example.com", "evt_1.mail_1", AT).as_bytes()
    return message_from_bytes(raw, policy=policy.default)


def body(message, kind):
    return message.get_body((kind,)).get_content()


def mail_text(**more):
    return MailText(
        **{"language": "en", "subject": "Paid", "sentences": ["It is."]} | more
    )


# Texts that customers and shops may write.
TEXTS = {
    "a header behind a line end": "Two mugs\nBcc: eve@example.com",
    "a header behind a carriage return": "Two mugs\r\nBcc: eve@example.com\r\n\r\nBuy",
    "a folded header": "Two mugs\r\n Bcc: eve@example.com",
    "a lone carriage return": "Two mugs\rBcc: eve@example.com",
    "a vertical tab and a form feed": "Two mugs\x0bBcc: eve@example.com\x0c",
    "line ends of Unicode": "Two mugs\u2028Bcc: eve@example.com\u2029\u0085",
    "a null": "Two mugs\x00Bcc: eve@example.com",
    "an encoded word": "=?utf-8?q?Two_mugs=0ABcc:_eve@example.com?=",
    "the end of a mail": "Two mugs\r\n.\r\nMAIL FROM:<eve@example.com>",
    "letters that are written from right to left": "Two mugs \u202egro.elpmaxe",
    "a thousand letters": "Two mugs " * 1000,
    "letters of other alphabets": "二つのマグカップ ñandú 🙂",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("place", ["subject", "fact", "sender"])
def test_what_somebody_writes_adds_no_header_and_no_line(place, text):
    if place == "sender":
        name = " ".join(
            "".join(c for c in text if c.isprintable() and c not in '<>"').split()
        )
        message = sent(mail_text(), Sender(name, "shop@example.com"))
        assert message["From"].addresses[0].addr_spec == "shop@example.com"
    else:
        more = {"subject": text} if place == "subject" else {"facts": [("For", text)]}
        message = sent(mail_text(**more))
    assert set(message.keys()) == HEADERS
    assert [str(one) for one in message["To"].addresses] == ["ada@example.com"]
    assert [part.get_content_type() for part in message.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]
    if place == "fact":
        plain = [line for line in body(message, "plain").splitlines() if line]
        assert (
            len(plain) == 2 and plain[1].startswith("For: ") and plain[1].isprintable()
        )
    if place == "subject":
        assert message["Subject"].isprintable()


HTML = [
    ("<img src=https://eve.example/x>", "<img"),
    ("<script>alert(1)</script>", "<script"),
    ("</td></tr></table><form>", "<form"),
    ('" onmouseover="x', '" onmouseover'),
]


def test_what_somebody_writes_is_text_in_html_where_nothing_is_loaded():
    for text, never in HTML:
        message = sent(
            mail_text(
                subject=text, facts=[("For", text)], link=(text, f"https://x/{text}")
            )
        )
        assert never not in body(message, "html")
        assert text in body(message, "plain")
    assert "src=" not in body(sent(mail_text(link=("Page", "https://x/"))), "html")


def test_the_same_mail_has_the_same_id_whenever_it_is_sent():
    ids = {sent(mail_text())["Message-ID"] for _ in range(2)}
    assert ids == {"<evt_1.mail_1@example.com>"}


INVOICE = blank(
    Invoice, id="inv_1", amount_sats=41_667, amount_usd_quote="1234.5", price_usd="60000",
    description="Two mugs", reference="10442", receipt_number=17,
)  # fmt: skip
PAGE = "https://pay.example.com/pay/inv_1"
BERLIN = ZoneInfo("Europe/Berlin")
NOTHING = {"contact": None, "business_address": None, "tax_number": None}
BRAND = SimpleNamespace(seller="My shop", **NOTHING)
STATE = {"received_sats": 50_000, "paid_ms": 1_700_000_000_000, "tx_hash": "ab" * 32}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_letter_in_every_language(language):
    about = InvoiceNews(INVOICE, STATE | {"attention": "short"}, PAGE, BERLIN)
    mails = [
        texts.paid_invoice(about, language),
        texts.receipt(about, language, BRAND),
        shop_texts.overdue(STATE["paid_ms"], BERLIN, language),
    ]
    mails += [
        texts.attention(
            InvoiceNews(INVOICE, STATE | {"attention": reason}, PAGE, BERLIN), language
        )
        for reason in REASONS
    ]
    english = [texts.paid_invoice(about, "en"), texts.receipt(about, "en", BRAND)]
    for one in mails:
        message = sent(one)
        assert message["Subject"] and body(message, "plain").strip()
        assert message["Subject"].endswith(" · 10442") is (
            "10442" in body(message, "plain")
        )
        assert f'lang="{language}"' in body(message, "html")
        assert "%(" not in message["Subject"] + body(message, "plain")
    assert len({one.text for one in mails}) == len(mails)
    if language != "en":
        assert not {one.subject for one in english} & {one.subject for one in mails}


def test_a_receipt_says_what_the_page_says():
    about = InvoiceNews(INVOICE, STATE, PAGE, BERLIN)
    receipt = texts.receipt(about, "en", BRAND)
    assert receipt.subject == "Receipt from My shop · 10442"
    assert receipt.text.split("\n\n") == [
        "Thank you. This is your receipt.",
        "Receipt number: 17\n"
        "Amount: 0.00041667 BTC\nValue when quoted: $1,234.50\n"
        "Price of one bitcoin: $60,000.00\nReceived: 0.00050000 BTC\n"
        "Reference: 10442\nFor: Two mugs\nTime: Nov 14, 2023, 11:13:20 PM UTC+1\n"
        f"Transaction: {'ab' * 32}\nNumber: inv_1",
        "Print receipt:\nhttps://pay.example.com/pay/inv_1\n",
    ]
    named = replace(INVOICE, customer_name="Ada", customer_note="For\ntable 7")
    receipt = texts.receipt(InvoiceNews(named, STATE, PAGE, BERLIN), "en", BRAND)
    assert "For: Two mugs\nName: Ada\nNote: For table 7\nTime: " in receipt.text
    about = InvoiceNews(replace(INVOICE, reference=None), STATE, PAGE, BERLIN)
    assert texts.receipt(about, "en", BRAND).subject == "Receipt from My shop"
    business = {
        "contact": "me@example.com",
        "business_address": "Quay 1\nHamburg",
        "tax_number": "DE1",
    }
    taxed = replace(INVOICE, gratuity="10", tax_percent="19")
    about = InvoiceNews(taxed, STATE, PAGE, BERLIN)
    brand = SimpleNamespace(seller="My shop", **business)
    receipt = texts.receipt(about, "en", brand).text
    assert (
        "Number: inv_1\nSeller: Quay 1, Hamburg\nTax number: DE1\n"
        "Contact: me@example.com\n" in receipt
    )
    assert "Including a tip of $10.00\n\nIncludes 19% tax: $195.51\n" in receipt


LINKS = {
    "an address of ASCII": ("ann@example.com", "ann@example.com"),
    "letters that programs read differently": ("ann@straße.de", "ann@xn--strae-oqa.de"),
    "an address that nobody can send to": (
        "ann at home?cc=eve@example.com",
        "ann%20at%20home%3Fcc%3Deve@example.com",
    ),
    "none": (None, ""),
}


@pytest.mark.parametrize(("to", "path"), LINKS.values(), ids=LINKS)
def test_a_link_that_opens_a_mail_names_the_address_that_we_would_send_to(to, path):
    assert mail_link(to, "a & b", "c") == f"mailto:{path}?subject=a%20%26%20b&body=c"
