"""A merchant's brand on the pages (`blocktill merchant brand`), and the owner of the root page."""

import re

import pytest

from btcpay.merchants import branding
from btcpay.merchants.merchants import set_brand
from btcpay.values.colours import button_text, contrast
from btcpay.values.errors import CommandError
from tests.support.paths import PROJECT
from tests.support.payer import Page

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + b"\x00" * 40
JPEG = b"\xff\xd8\xff\xe0" + b"\x00" * 40
WEBP = b"RIFF\x24\x00\x00\x00WEBPVP8L" + b"\x00" * 40
GREEN = "#0b7a4b"
HARD_TO_SEE = {
    "gold is lost on white": ("#ffd700", "light page.*choose a darker"),
    "a grey: 2.96 to 1 on white": ("#969696", "light page.*choose a darker"),
    "navy is lost in the dark": ("#1a237e", "dark page.*choose a lighter"),
    "black": ("#000000", "dark page.*choose a lighter"),
    "a name": ("red", "colour such as"),
    "three digits": ("#fff", "colour such as"),
    "more than a colour": ("#2563eb;}", "colour such as"),
    "full-width digits": ("#2563e\uff42", "colour such as"),
}
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def shop(till):
    return till.shop


def pages(shop):
    """The page of an invoice and that of a link."""
    paths = f"/pay/{shop.invoice()['id']}", f"/link/{shop.link(amount_usd=5)['id']}"
    return [Page(shop.client.get(path).text) for path in paths]


def hrefs(page, rel):
    return [
        named["href"]
        for tag, named in page.tags
        if tag == "link" and named["rel"] == rel
    ]


def test_without_a_brand_the_pages_have_the_name_that_the_merchant_was_added_by(
    shop, blocktill
):
    for page in pages(shop):
        assert (
            page.texts["brand"].strip() == "shop"
            and "\u00b7 shop</title>" in page.source
        )
        assert len(hrefs(page, "stylesheet")) == 1 and "&amp;label=" not in page.source
    assert blocktill.json("merchant", "brand", "shop")[0]["name"] is None


def test_a_brand_shows_on_both_pages_of_its_merchant_alone(shop, blocktill, tmp_path):
    (tmp_path / "logo").write_bytes(PNG)
    blocktill.run("merchant", "brand", "shop", "--logo", str(tmp_path / "logo"))
    for page in pages(shop):  # a logo without a name stands for it
        assert (
            page.attributes["logo"]["alt"] == "shop" and not page.texts["brand"].strip()
        )
    words = ("--name", "Caf\u00e9 & Co", "--accent", "#0B7A4B")
    (row,) = blocktill.json("merchant", "brand", "shop", *words)
    assert (row["name"], row["accent"], row["logo_type"]) == (
        "Caf\u00e9 & Co",
        GREEN,
        "image/png",
    )
    for page in pages(shop):
        assert page.texts["brand"].strip() == "Caf\u00e9 & Co"
        assert "Caf\u00e9 &amp; Co</title>" in page.source
        logo = shop.client.get(page.attributes["logo"]["src"][2:])
        assert (logo.data, logo.content_type) == (PNG, "image/png")
        assert logo.headers["X-Content-Type-Options"] == "nosniff"
        assert "immutable" in logo.headers["Cache-Control"]
        accent = shop.client.get(hrefs(page, "stylesheet")[1][2:])
        assert accent.text == ".branded{--accent:#0b7a4b;--on-accent:#ffffff}\n"
        assert accent.mimetype == "text/css"
    assert "&label=Caf%C3%A9%20%26%20Co" in pages(shop)[0].uri
    shop.write_key = shop.issue("write", shop.add_merchant("other"))
    made = shop.post("/invoices", {"amount_usd": 5}).json
    assert (
        Page(shop.client.get(f"/pay/{made['id']}").text).texts["brand"].strip()
        == "other"
    )


@pytest.mark.parametrize(
    ("network", "mark"), [("mainnet", None), ("signet", "Test network: signet")]
)
def test_every_page_of_a_test_network_is_marked(open_shops, network, mark):
    shop = open_shops(BLOCKTILL_NETWORK=network)
    nothing_here = Page(shop.client.get("/pay/inv_x").text)
    for page in (*pages(shop), nothing_here):
        assert page.texts.get("testing") == mark


def test_what_is_not_given_stays_and_clear_forgets(shop, blocktill):
    db = shop.service.db
    own = shop.merchant_id
    set_brand(db, own, branding.brand_columns(name="One", accent=GREEN))
    row = set_brand(db, own, branding.brand_columns(name="Two", logo=PNG))
    assert (row.name, row.accent, row.logo_type) == ("Two", GREEN, "image/png")
    assert set_brand(db, own, {}) == row
    row = set_brand(db, own, branding.brand_columns(accent=GREEN), clear=True)
    assert (row.name, row.accent, row.logo) == (None, GREEN, None)
    (row,) = blocktill.json("merchant", "brand", "shop", "--clear")
    assert set(row.values()) == {"shop", None}


def test_a_logo_is_known_by_its_bytes_and_any_other_is_refused():
    as_large_as_can_be = PNG.ljust(branding.MAX_LOGO_BYTES, b"0")
    for logo in (PNG, as_large_as_can_be):
        assert branding.image_type(logo) == "image/png"
    assert branding.image_type(JPEG) == "image/jpeg"
    assert branding.image_type(WEBP) == "image/webp"
    for other in (
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>",
        b"<!doctype html><script>alert(1)</script>",
        b"GIF89a" + b"\0" * 40,
        b"RIFF\x24\x00\x00\x00WAVEfmt ",  # sound in the same container
        b" " + PNG,
        as_large_as_can_be + b"0",
    ):
        with pytest.raises(CommandError, match="logo"):
            branding.image_type(other)


def test_what_is_refused_changes_nothing(blocktill, tmp_path):
    (tmp_path / "logo.png").write_bytes(b"<svg/>")
    words = ("--name", "New", "--logo", str(tmp_path / "logo.png"))
    assert (
        "PNG, JPEG or WebP"
        in blocktill.run("merchant", "brand", "shop", *words, status=1)[1]
    )
    assert blocktill.json("merchant", "brand", "shop")[0]["name"] is None
    assert (
        "'nobody'"
        in blocktill.run("merchant", "brand", "nobody", "--name", "x", status=1)[1]
    )


def test_what_there_is_not_is_404(shop):
    """A logo that nobody has, a style for what is no colour."""
    colours = ("0B7A4B.css", "0b7a4b", "0b7a4b.css.css", "x.css")
    logos = (f"/logo/{hash}" for hash in ("0" * 64, "x", "%00", "..%2fmeta"))
    for path in (*logos, *(f"/accent/{name}" for name in colours)):
        assert shop.client.get(path).status_code == 404, path


def test_contrast_is_that_of_wcag():
    for colour, ratio in (("#000000", 21.0), ("#777777", 4.48), ("#ff0000", 4.0)):
        for pair in ((colour, "#ffffff"), ("#ffffff", colour)):
            assert round(contrast(*pair), 2) == ratio, pair


# The lightest grey is 3.03 to 1 on white.
@pytest.mark.parametrize(
    "accent", [GREEN, "#2563eb", " #C0392B ", "#949494", "#666666"]
)
def test_a_colour_that_reads_in_both_themes_is_taken(accent):
    taken = branding.checked_accent(accent)
    assert contrast(taken, button_text(taken)) >= 4.5
    assert min(contrast(taken, page) for page in ("#ffffff", "#15181d")) >= 3


@pytest.mark.parametrize("case", HARD_TO_SEE)
def test_a_colour_that_is_hard_to_see_is_refused_with_the_reason(case):
    accent, reason = HARD_TO_SEE[case]
    with pytest.raises(CommandError, match=reason):
        branding.checked_accent(accent)


def palettes():
    """The colours of the light theme, and those of the dark one."""
    css = (PROJECT / "btcpay" / "web" / "pages" / "static" / "pages.css").read_text()
    light, dark = re.findall(r"--page: #.*?\}", css, re.S)[:2]
    colours = [
        dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in (light, dark)
    ]
    return [colours[0], colours[0] | colours[1]]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_pages_own_texts_have_a_contrast_of_aa(theme):
    colours = palettes()[theme]
    assert colours["page"] == (branding.LIGHT_PAGE, branding.DARK_PAGE)[theme]
    for text in ("ink", "quiet", "bad"):
        assert contrast(colours[text], colours["page"]) >= 4.5, text
    assert contrast(colours["ink"], colours["field"]) >= 4.5
    assert branding.checked_accent(colours["accent"]) == colours["accent"]
    assert colours["on-accent"] == button_text(colours["accent"])


def test_a_name_is_text_and_never_markup(shop, blocktill):
    blocktill.run("merchant", "brand", "shop", "--name", "<b>&{{7*7}}</title>")
    for page in pages(shop):
        assert page.texts["brand"].strip() == "<b>&{{7*7}}</title>"
        assert "b" not in [tag for tag, _ in page.tags]


def test_a_browser_is_shown_whose_service_it_is_and_what_to_do(shop):
    page = Page(shop.client.get("/?lang=de", headers=BROWSER).text)
    assert (
        "<title>Zahlung \u00b7 shop</title>" in page.source
        and page.texts["brand"].strip() == "shop"
    )
    assert "Link, den Sie vom Verkäufer bekommen haben" in page.source


def test_of_several_merchants_none_is_named(shop):
    shop.add_merchant("bakery")
    answer = shop.client.get("/", headers=BROWSER)
    page = Page(answer.text)
    assert (
        answer.status_code == 200
        and "Bitcoin payments are received here." in page.source
    )
    assert "brand" not in page.texts and "bakery" not in page.source


def test_a_page_that_sends_to_the_seller_says_how_to_reach_whoever_that_is(shop):
    set_brand(shop.service.db, shop.merchant_id, {"contact": "+49 30 12345"})
    link = shop.link(amount_usd=5)
    shop.sql("UPDATE payment_link SET status = 'inactive'")
    ended = f"/link/{link['id']}"
    unknown = f"/pay/inv_{'a' * 24}"
    for path, status in ((ended, 410), (unknown, 404)):
        answer = shop.client.get(path)
        assert answer.status_code == status
        assert Page(answer.text).texts["contact"].strip() == "+49 30 12345", path
    shop.add_merchant("bakery")
    assert (
        "12345" in shop.client.get(ended).text
        and "12345" not in shop.client.get(unknown).text
    )


@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
def test_a_program_finds_nothing(shop, accept):
    answer = shop.client.get("/", headers={"Accept": accept})
    assert (answer.status_code, answer.json["error"]["code"]) == (404, "not_found")
