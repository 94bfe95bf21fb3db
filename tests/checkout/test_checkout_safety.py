"""Around the pages: headers, frames, limits of their own, files of their own, weight."""

import gzip
import re

import pytest

from btcpay.web import rate_limits
from btcpay.web.pages import assets, render
from tests.support.builders import pay
from tests.support.paths import PROJECT
from tests.support.payer import Page, press

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
    " manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors "
)
STATIC = PROJECT / "btcpay" / "web" / "pages" / "static"


def paths(shop):
    """One of each kind that a visitor may ask for, errors included."""
    invoice = f"/pay/{shop.invoice()['id']}"
    link = f"/link/{shop.link()['id']}"
    return [
        invoice,
        f"{invoice}/status",
        link,
        "/pay/inv_x",
        "/link/lnk_x",
        "/logo/x",
        "/assets/x",
    ]


def test_every_answer_forbids_what_pages_do_not_need(shop, open_shops):
    for path in paths(shop):
        headers = shop.client.get(path).headers
        assert headers["Content-Security-Policy"] == POLICY + "'none'", path
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Permissions-Policy"] == "camera=()"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert "Set-Cookie" not in headers
        assert not [name for name, _ in headers if name.startswith("X-RateLimit")]
    ancestors = "https://a.example https://b.example:8443"
    shop = open_shops(BLOCKTILL_FRAME_ANCESTORS=ancestors)
    for path in paths(shop):
        assert (
            shop.client.get(path).headers["Content-Security-Policy"]
            == POLICY + ancestors
        )


def all_pages(shop):
    paid = shop.invoice()
    part = shop.invoice(expires_in_hours=1, description="x")
    pay(shop, paid)
    pay(shop, part, 5000, confirmed=False)
    flexible = shop.link(title="T", description="D")
    found = [
        f"/pay/{paid['id']}",
        f"/pay/{part['id']}",
        f"/link/{flexible['id']}",
        *paths(shop),
    ]
    answers = [shop.client.get(path) for path in found]
    answers.append(shop.client.post(f"/link/{flexible['id']}", data={"amount": "x"}))
    return [Page(answer.text) for answer in answers if answer.mimetype == "text/html"]


def test_no_page_has_code_inside_asks_another_host_or_leaves_out_those_who_listen(shop):
    for page in all_pages(shop):
        assert not re.search(r"<script[^>]*>[^<]", page.source)
        assert [tag for tag, _ in page.tags].count("h1") == 1
        assert page.attributes["announce"]["aria-live"] == "polite"
        for tag, named in page.tags:
            assert tag != "style" and not {"style", "srcdoc"} & set(named)
            assert [name for name in named if name.startswith("on")] == []
            for name in ("src", "href", "action"):
                address = named.get(name, "?")
                assert re.match(r"\?|\.\./|bitcoin:", address), address
            assert tag != "img" or "alt" in named
            if tag == "input" and named.get("type") != "hidden":
                assert f'<label for="{named["id"]}"' in page.source
            assert (
                set(named.get("aria-describedby", "").split()) <= page.attributes.keys()
            )
    for name in ("pages.js", "pages.css"):
        assert not re.search(r"https?:|//\w|@import|url\(", (STATIC / name).read_text())


def test_visitors_have_a_window_of_their_own(shop):
    path = f"/pay/{shop.invoice()['id']}"
    for _ in range(rate_limits.VISITS.limit - 1):
        shop.service.limiter.hit(rate_limits.VISITS, "127.0.0.1")
    assert shop.client.get(path).status_code == 200
    page = shop.client.get(path)
    status = shop.client.get(f"{path}/status")
    assert page.status_code == status.status_code == 429
    assert "wait a minute" in page.text and page.mimetype == "text/html"
    assert status.json["error"]["code"] == "rate_limited"
    for answer in (page, status):
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert shop.get("/balance").headers["X-RateLimit-Remaining"] == "119"
    elsewhere = {"REMOTE_ADDR": "198.51.100.7"}
    assert shop.client.get(path, environ_base=elsewhere).status_code == 200
    shop.clock.move(seconds=61)
    assert shop.client.get(path).status_code == 200


def test_a_file_is_kept_for_ever_under_the_hash_of_its_content_and_no_other_is_served(
    shop,
):
    for name in ("pages.css", "pages.js", "icon.svg"):
        answer = shop.client.get("/" + assets.asset_path(name))
        assert answer.data == (STATIC / name).read_bytes()
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    old = shop.client.get("/assets/pages.0000000000.css")
    assert old.status_code == 200 and old.headers["Cache-Control"] == "no-store"
    others = (
        "pages.css",
        "../settings.py",
        "..%2f..%2fsettings.py",
        "pages.0000000000.py",
        "%00",
    )
    for name in others:
        assert shop.client.get(f"/assets/{name}").status_code == 404, name
    answer = shop.client.get(f"/pay/{shop.invoice()['id']}")  # before the page is read
    assert (
        answer.headers["Link"]
        == f"<../{assets.asset_path('pages.css')}>; rel=preload; as=style"
    )


COMPRESSED = {
    "gzip, deflate, br, zstd": "gzip",
    "br;q=1.0, gzip;q=0.2": "gzip",
    "*": "gzip",
    "gzip;q=0": None,
    "br": None,
    "": None,
}


def test_a_file_is_compressed_for_who_accepts_it(shop):
    plain = (STATIC / "pages.js").read_bytes()
    for accepted, encoding in COMPRESSED.items():
        asked = {"Accept-Encoding": accepted}
        answer = shop.client.get("/" + assets.asset_path("pages.js"), headers=asked)
        assert answer.headers.get("Content-Encoding") == encoding, accepted
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert (gzip.decompress(answer.data) if encoding else answer.data) == plain
        assert (len(answer.data) < len(plain) / 2) is bool(encoding)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_first_visit_weighs_under_13_kb_and_asks_four_times(shop, language):
    """A link's page once more, for the script of its form."""
    texts = {"description": "\u65e5" * 500}
    invoice = shop.invoice(999_999.99, expires_in_hours=1, **texts)
    gzip_accepted = {"Accept-Encoding": "gzip"}
    pay_path = f"/pay/{invoice['id']}"
    link_path = f"/link/{shop.link(**texts)['id']}"
    for path, asked in ((pay_path, 4), (link_path, 5)):
        answer = shop.client.get(f"{path}?lang={language}", headers=gzip_accepted)
        page = Page(gzip.decompress(answer.data).decode())
        files = [named["href"] for tag, named in page.tags if tag == "link"]
        files += [named["src"] for tag, named in page.tags if tag == "script"]
        assert 1 + len(files) == asked
        sent = [
            len(shop.client.get(file[2:], headers=gzip_accepted).data) for file in files
        ]
        assert len(answer.data) + sum(sent) < 13_000


def test_a_page_is_compressed_where_no_secret_stands_beside_what_a_stranger_chose(
    shop,
):
    """A link's page shows a visitor the payment that they began: then it is not."""
    invoice = shop.invoice()
    pay(shop, invoice)
    link = shop.link()
    for path in (
        f"/pay/{invoice['id']}",
        f"/pay/{invoice['id']}/proof",
        "/pay/inv_x",
        "/link/lnk_x",
        f"/link/{link['id']}",
        "/",
    ):
        headers = {"Accept-Encoding": "gzip", "Accept": "text/html"}
        answer = shop.client.get(path, headers=headers)
        assert answer.headers.get("Content-Encoding") == "gzip", path
        assert answer.headers["Vary"] == "Accept-Encoding"
        page = Page(gzip.decompress(answer.data).decode())
        assert page.tags[0][0] == "html"
    client = shop.client
    press(client, link, "5")
    answer = client.get(f"/link/{link['id']}", headers=headers)
    assert "Content-Encoding" not in answer.headers and "unpaid" in answer.text


def test_a_warm_worker_has_compiled_what_the_first_payer_needs(shop):
    app = shop.client.application
    render.warm(app)
    invoice = shop.invoice()
    compiled = set(dict(app.jinja_env.cache or {}))
    for path in (f"/pay/{invoice['id']}", f"/link/{shop.link()['id']}", "/pay/inv_x"):
        shop.client.get(path)
    assert set(dict(app.jinja_env.cache or {})) == compiled
    names = {name for _, name in compiled}
    assert {"invoice.html", "message.html"} <= names
    assert not any(name.startswith("merchant/") for name in names)


def test_a_page_with_what_was_typed_and_one_without_gzip_go_out_as_they_are(open_shops):
    """What a stranger chose and a compressed length together tell what stands beside (BREACH)."""
    shop = open_shops(
        BLOCKTILL_SMTP_URL="smtp://127.0.0.1:25", BLOCKTILL_MAIL_FROM="shop@example.com"
    )
    path = f"/pay/{shop.invoice()['id']}"
    plain = shop.client.get(path, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    assert plain.headers["Vary"] == "Accept-Encoding"
    for method in (shop.client.get, shop.client.head):
        answer = method(path, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["Content-Encoding"] == "gzip"
    posted = shop.client.post(
        f"{path}/receipt", data={"email": "nobody"}, headers={"Accept-Encoding": "gzip"}
    )
    assert posted.status_code == 400
    assert "Content-Encoding" not in posted.headers


def test_a_fault_and_a_body_that_is_too_large_are_pages_that_give_nothing_away(
    open_shops, caplog
):
    shop = open_shops(BLOCKTILL_MAX_BODY_BYTES="1024")
    path = f"/pay/{shop.invoice()['id']}"
    link = shop.link()
    answer = shop.client.post(f"/link/{link['id']}", data={"amount": "9" * 2000})
    assert answer.status_code == 413 and answer.mimetype == "text/html"
    shop.sql("ALTER TABLE brand RENAME TO gone")
    answer = shop.client.get(path)
    assert (
        answer.status_code == 500
        and "gone" not in answer.text
        and "brand" not in answer.text
    )
    assert re.search(r"req_\w+", answer.text)[0] in caplog.text
    assert "request id" not in answer.text  # what the API says is in English alone
