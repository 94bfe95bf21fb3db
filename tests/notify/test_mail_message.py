"""A mail's text becomes one mail of two parts; nothing that is said in it becomes anything else."""

from datetime import UTC, datetime
from decimal import Decimal
from email import message_from_bytes, policy
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES
from btcpay.languages.formats import direction
from btcpay.notify.mail import shop_texts, texts
from btcpay.notify.mail.content import MailText
from btcpay.notify.mail.html_part import html_of
from btcpay.notify.mail.mailto import mail_link
from btcpay.notify.mail.message import message_of
from btcpay.notify.mail.receipt import receipt
from btcpay.notify.mail.texts import InvoiceNews
from btcpay.settings.mail_settings import Sender
from btcpay.settlement.attention import REASONS
from storage.models import Invoice
from storage.queries.merchants import MailBrand
from storage.statement import blank, replace

AT = datetime(2026, 11, 22, 7, 0, tzinfo=UTC)
SENDER = Sender("My shop", "shop@example.com")
PLAIN = MailBrand("My shop")
HEADERS = {
    *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version"),
    "Content-Type",
}


def sent(mail, sender=SENDER, brand=PLAIN):
    """The mail as whoever gets it reads it."""
    message = message_of(mail, brand, sender, "ada@example.com", "evt_1.mail_1", AT)
    return message_from_bytes(message.as_bytes(), policy=policy.default)


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
    description="Two mugs", reference="10442", receipt_number=17, price="60000", currency="USD",
)  # fmt: skip
PAGE = "https://pay.example.com/pay/inv_1"
BERLIN = ZoneInfo("Europe/Berlin")
NOTHING = {"contact": None, "business_address": None, "tax_number": None}
BRAND = SimpleNamespace(seller="My shop", **NOTHING)
STATE = {
    "received_sats": 50_000,
    "stake_sats": 8_333,
    "paid_ms": 1_700_000_000_000,
    "tx_hash": "ab" * 32,
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_letter_in_every_language(language):
    about = InvoiceNews(INVOICE, STATE | {"attention": "short"}, PAGE, BERLIN)
    mails = [
        texts.paid_invoice(about, language),
        receipt(about, language, BRAND),
        shop_texts.overdue(STATE["paid_ms"], BERLIN, None, language),
    ]
    mails += [
        texts.attention(
            InvoiceNews(INVOICE, STATE | {"attention": reason}, PAGE, BERLIN), language
        )
        for reason in REASONS
    ]
    english = [texts.paid_invoice(about, "en"), receipt(about, "en", BRAND)]
    for one in mails:
        message = sent(one)
        assert message["Subject"] and body(message, "plain").strip()
        assert message["Subject"].endswith(" · 10442") is (
            "10442" in body(message, "plain")
        )
        assert f'lang="{language}" dir="{direction(language)}"' in body(message, "html")
        assert "%(" not in message["Subject"] + body(message, "plain")
    assert len({one.text for one in mails}) == len(mails)
    if language != "en":
        assert not {one.subject for one in english} & {one.subject for one in mails}


def test_a_receipt_says_what_the_page_says():
    about = InvoiceNews(INVOICE, STATE, PAGE, BERLIN)
    mail = receipt(about, "en", BRAND)
    assert mail.subject == "Receipt from My shop · 10442"
    assert mail.text.split("\n\n") == [
        "$1,234.50",
        "Thank you. This is your receipt.",
        "Receipt number: 17\nReference: 10442\nFor: Two mugs\n"
        "Time: Nov 14, 2023, 11:13:20 PM UTC+1\n"
        "Amount: 0.00041667 BTC\nReceived: 0.00050000 BTC\n"
        f"Price of one bitcoin: $60,000.00\nTransaction: {'ab' * 32}\n"
        "Payment number: inv_1",
        "Open the receipt:\nhttps://pay.example.com/pay/inv_1\n",
    ]
    named = replace(INVOICE, customer_name="Ada", customer_note="For\ntable 7")
    mail = receipt(InvoiceNews(named, STATE, PAGE, BERLIN), "en", BRAND)
    assert "For: Two mugs\nName: Ada\nNote: For table 7\nTime: " in mail.text
    about = InvoiceNews(replace(INVOICE, reference=None), STATE, PAGE, BERLIN)
    assert receipt(about, "en", BRAND).subject == "Receipt from My shop"


@pytest.mark.parametrize("language", ["ar", "fa"])
def test_amounts_keep_their_order_where_text_runs_from_the_right(language):
    """Without their marks the currency's sign would stand on the other side."""
    mail = receipt(InvoiceNews(INVOICE, STATE, PAGE, BERLIN), language, BRAND)
    price = formats.money(Decimal(60_000), "USD", language).replace("\xa0", " ")
    time = formats.moment(STATE["paid_ms"], language, BERLIN).replace("\xa0", " ")
    for text in (mail.text, html_of(mail, PLAIN, None)):
        assert price in text and " ".join(time.split()) in text


def test_a_receipt_names_tip_tax_and_business():
    taxed = replace(INVOICE, gratuity="10", tax_percent="19")
    brand = SimpleNamespace(
        seller="My shop",
        contact="me@example.com",
        business_address="Quay 1\nHamburg",
        tax_number="DE1",
    )
    mail = receipt(InvoiceNews(taxed, STATE, PAGE, BERLIN), "en", brand)
    assert mail.text.startswith(
        "$1,234.50\nIncluding a tip of $10.00\nIncludes 19% tax: $195.51\n\n"
    )
    assert mail.text.endswith(
        "\n\nMy shop\nQuay 1\nHamburg\nTax number: DE1\nContact: me@example.com\n"
    )
    html = body(sent(mail), "html")
    assert "<bdi>Quay 1</bdi><br>" in html and "<bdi>Hamburg</bdi>" in html


MERCHANT_PAGE = "https://pay.example.com/merchant/invoices/inv_1"
# The reason, the state's sums, and what the mail says in large type and below.
DIFFERENCES = {
    "too much": ("too_much", {"stake_sats": 8_283}, "€4.97 too much"),
    "too little": ("short", {"received_sats": 40_000}, "€1.00 is missing"),
    "less than can be sent": (
        "dust_missing",
        {"received_sats": 41_666},
        "<\xa0€0.01 is missing",
    ),
    "late": ("paid_late", {}, "€25.00"),
}


@pytest.mark.parametrize(
    ("reason", "sums", "amount"), DIFFERENCES.values(), ids=DIFFERENCES
)
def test_a_merchant_reads_the_difference_and_opens_the_page_that_has_the_buttons(
    reason, sums, amount
):
    invoice = replace(
        INVOICE, amount="25.00", price="60000", currency="EUR", reference=None
    )
    state = STATE | {"attention": reason} | sums
    about = InvoiceNews(invoice, state, PAGE, BERLIN, MERCHANT_PAGE)
    mail = texts.attention(about, "en")
    assert mail.subject == f"An invoice needs your attention: {amount}"
    assert mail.text.startswith(f"{amount}\n\n") and MERCHANT_PAGE in mail.text
    assert "on the server" not in mail.text
    assert ("Asked for: €25.00\n" in mail.text) is (amount != "€25.00")
    plain = texts.attention(InvoiceNews(invoice, state, PAGE, BERLIN), "en").text
    assert "run blocktill invoice show inv_1 on the server" in plain and PAGE in plain


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def test_a_logo_is_a_part_of_the_mail_that_its_html_shows():
    brand = MailBrand("My shop", None, "#0b7a4b", PNG, "image/png")
    mail = mail_text(link=("Page", "https://x/"), amount="€25.00")
    message = sent(mail, brand=brand)
    assert [part.get_content_type() for part in message.walk()] == [
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
    ]
    *_, image = message.walk()
    assert image.get_content() == PNG
    assert image["Content-Disposition"].content_disposition == "inline"
    assert image["Content-ID"] == "<logo@example.com>"
    html = body(message, "html")
    assert html.count("src=") == 1
    assert 'src="cid:logo@example.com" alt="My shop"' in html
    assert 'bgcolor="#0b7a4b"' in html and html.count("<a ") == 1
    named = body(sent(mail, brand=brand._replace(name="My shop")), "html")
    assert 'alt=""' in named and "My shop</bdi>" in named


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
