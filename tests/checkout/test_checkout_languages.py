"""Eight languages: complete catalogs, chosen by header or link; numbers as each writes them."""

import re
from functools import cache
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from btcpay.languages import catalogs
from btcpay.languages.catalogs import FOLDER, LANGUAGES
from tests.support.builders import pay
from tests.support.paths import GONE, PROJECT
from tests.support.payer import Page

# The sandbox's pages are for developers, in English only.
PAGES = [
    folder
    for folder in (PROJECT / "btcpay").rglob("templates")
    if "sandbox" not in folder.relative_to(PROJECT).parts
]
METHODS = [("**.py", "python"), ("**/templates/**.html", "jinja2")]
TRIMMED = {"**/templates/**.html": {"trimmed": "true", "silent": "false"}}
TRANSLATED = sorted(set(LANGUAGES) - {"en"})


@cache
def msgids():
    """The texts of pages and mails to translate; collected on demand, since it takes a second."""
    found = extract_from_dir(PROJECT / "btcpay", METHODS, TRIMMED)
    return {message for _, _, message, _, _ in found}


def catalog(language):
    with (FOLDER / f"{language}.po").open("rb") as file:
        return read_po(file, language)


def texts(value):
    return [value] if isinstance(value, str) else list(value)


def test_the_glossary_has_the_words_that_the_catalogs_use():
    """A column for each language, in the order of the menu, English first."""
    page = (PROJECT / "docs/developers/languages.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!English|---)[^|]+ \| (.+) \|$", page, re.M)
    assert len(rows) > 10
    for place, language in enumerate(list(LANGUAGES)[1:]):
        used = " ".join(
            text for m in catalog(language) for text in texts(m.string)
        ).lower()
        words = [row.split(" | ")[place] for row in rows]
        assert [word for word in words if word.lower() not in used] == [], language


def places(text):
    return set(re.findall(r"%\(\w+\)s", text))


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_catalog_translates_every_text_of_the_pages_and_no_other_with_its_values(
    language,
):
    assert sorted(path.stem for path in FOLDER.glob("*.po")) == TRANSLATED
    assert len(msgids()) > 50 and {"Paid", "Open in wallet"} <= msgids()
    found = catalog(language)
    messages = [message for message in found if message.id]
    spare = {message.id for message in messages} ^ msgids()
    if not GONE:
        assert spare == set()
    assert spare & msgids() == set()  # a part that was deleted has left its texts
    for message in messages:
        translated = texts(message.string)
        asked = set().union(*map(places, texts(message.id)))
        assert all(translated) and not message.fuzzy, message.id
        assert len(translated) == (found.num_plurals if message.pluralizable else 1), (
            message.id
        )
        assert places(translated[-1]) == asked, message.id
        for text in translated:
            assert places(text) <= asked, text
            assert "%" not in re.sub(r"%\(\w+\)s|%%", "", text), text
            assert "<" not in text, "a template would show it as a tag"


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_text_and_plural_form_is_the_one_that_gettext_finds(language):
    """Babel compiles the same file for Python's gettext."""
    compiled = BytesIO()
    write_mo(compiled, catalog(language))
    compiled.seek(0)
    judge = GNUTranslations(compiled)
    read = catalogs.catalog(language)
    for message in (message for message in catalog(language) if message.id):
        if not message.pluralizable:
            assert read.gettext(message.id) == judge.gettext(message.id)
            continue
        for number in range(250):
            assert read.ngettext(*message.id, number) == judge.ngettext(
                *message.id, number
            )


def test_no_text_stands_in_a_template_untranslated():
    """Between tags there are only expressions and what no language changes."""
    assert len(PAGES) > 2
    for path in (path for folder in PAGES for path in folder.rglob("*.html")):
        text = re.sub(r" data-[\w-]+=(\"[^\"]*\"|'[^']*')", "", path.read_text())
        text = re.sub(r"\{% block layout %\}\w*", "", text)  # a class, no text
        bare = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", "", text, flags=re.S)
        assert set(bare.split()) <= {"BTC", "ms", "\u00b7", "$", "\u2248"}, path.name


# What the merchant alone reads as an invoice, and never a payer: for them it is a payment.
INVOICES = {
    "en": "invoice",
    "es": "factura",
    "de": "rechnung",
    "fr": "facture",
    "pt": "fatura",
    "ar": "فاتورة",
    "fa": "صورت‌حساب",
}


@pytest.mark.parametrize("language", INVOICES)
def test_a_payer_reads_of_payments_and_not_of_invoices(language):
    read = catalogs.catalog(language)
    for room in ("checkout", "web/pages"):
        for _, _, message, _, _ in extract_from_dir(
            PROJECT / "btcpay" / room, METHODS, TRIMMED
        ):
            for text in texts(message):
                assert INVOICES[language] not in read.gettext(text).lower(), text


UNITS = ("amount", "amount-sats", "amount-btc")
# The heading, and $1,234.50 as each writes it, in dollars, satoshis and bitcoin.
ENGLISH = ("Waiting for your payment", "$1,234.50", "2,057,500 satoshis", "0.02057500")
SHOWN = {
    "en": ENGLISH,
    "es": ("A la espera de su pago", "1.234,50\u00a0US$", "2.057.500 satoshis", "0,02057500"),
    "de": ("Warten auf Ihre Zahlung", "1.234,50\u00a0$", "2.057.500 Satoshi", "0,02057500"),
    "fr": ("En attente de votre paiement", "1 234,50\u00a0$US", "2 057 500 satoshis", "0,02057500"),
    "pt": ("Aguardando o seu pagamento", "US$\u00a01.234,50", "2.057.500 satoshis", "0,02057500"),
    "ja": ("お支払いをお待ちしています", "$1,234.50", "2,057,500 satoshi", "0.02057500"),
    "ar": ("في انتظار دفعتك", "\u2068\u200f1,234.50\u00a0US$\u200e\u2069", "2,057,500 ساتوشي",
        "0.02057500"),
    "fa": ("در انتظار پرداخت شما", "\u2068\u200e$\u00a0۱٬۲۳۴٫۵۰\u2069", "۲٬۰۵۷٬۵۰۰ ساتوشی",
        "۰٫۰۲۰۵۷۵۰۰"),
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_in_the_language_that_is_picked_and_writes_numbers_as_it_does(
    shop, language
):
    path = f"/pay/{shop.invoice(1234.5)['id']}?lang={language}"
    page = Page(shop.client.get(path, headers={"Accept-Language": "fr"}).text)
    direction = "rtl" if language in ("ar", "fa") else "ltr"
    assert page.tags[0][1] == {"lang": language, "dir": direction}
    amounts = [page.texts[unit].replace("\u202f", " ") for unit in UNITS]
    assert (page.texts["state"], *amounts) == SHOWN[language]
    assert (
        page.attributes["copy-amount"]["data-copy"] == "0.020575"
    )  # as wallets read it
    links = [named for tag, named in page.tags if tag == "a" and "hreflang" in named]
    assert [link["href"] for link in links] == [f"?lang={code}" for code in LANGUAGES]
    assert [link["lang"] for link in links if "aria-current" in link] == [language]


ACCEPTED = {
    "de": "de", "de-AT,de;q=0.9,en;q=0.8": "de", "pt-BR": "pt", "la,es;q=0.7,en;q=0.3": "es",
    "fr;q=0.1,ja;q=0.9": "ja", "la": "en", "": "en", "*": "en", "\x00;;q=x,,,": "en",
}  # fmt: skip


def test_without_a_choice_that_we_have_the_browser_decides(shop):
    path = f"/pay/{shop.invoice()['id']}"
    for accept, language in ACCEPTED.items():
        page = Page(shop.client.get(path, headers={"Accept-Language": accept}).text)
        assert page.tags[0][1]["lang"] == language, accept
    for lang in ("../../etc", "DE", "de_DE", "xx", "", "de%00", "%F0%9F%92%A9"):
        answer = shop.client.get(
            f"{path}?lang={lang}", headers={"Accept-Language": "ja"}
        )
        assert Page(answer.text).texts["state"] == SHOWN["ja"][0], lang


def test_a_choice_is_carried_from_the_link_to_the_invoice_without_a_cookie(shop):
    link = shop.link(amount_usd=5)
    page = shop.client.get(f"/link/{link['id']}?lang=de")
    assert 'action="?lang=de"' in page.text and "Set-Cookie" not in page.headers
    pressed = shop.client.post(f"/link/{link['id']}?lang=de")
    assert pressed.headers["Location"].endswith("?lang=de")
    assert "?" not in shop.client.post(f"/link/{link['id']}").headers["Location"]


def test_refusals_and_error_pages_are_in_the_visitors_language_and_digits(shop):
    link = shop.link(max_amount_usd=50)
    invoice = shop.invoice()
    response = shop.client.post(f"/link/{link['id']}?lang=fa", data={"amount": "x"})
    assert "۲۵ یا ۱۹٫۹۰" in Page(response.text).texts["amount-problem"]
    response = shop.client.get("/pay/inv_unknown", headers={"Accept-Language": "es"})
    assert response.status_code == 404 and "nada" in response.text
    pay(shop, invoice, confirmed=False)
    page = Page(shop.client.get(f"/pay/{invoice['id']}?lang=fa").text)
    assert "در انتظار ۱ تأیید" in page.texts["words"]


def test_the_script_has_no_text_of_its_own():
    script = Path(
        PROJECT / "btcpay" / "web" / "pages" / "static" / "pages.js"
    ).read_text()
    strings = re.findall(r"\"([^\"\n]*)\"", re.sub(r"//.*", "", script))
    assert [text for text in strings if re.search(r"[A-Za-z]+ [A-Za-z]+", text)] == [
        "use strict"
    ]
