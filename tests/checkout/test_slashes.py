"""Who types a slash behind a page's path is led to the page."""

from urllib.parse import urljoin

import pytest

PLACES = [
    "/pay/{invoice}/",
    "/pay/{invoice}/proof/",
    "/link/{link}/",
    "/pay/{invoice}/?lang=de",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_payers_page_is_found_with_a_slash_behind_it(shop, place):
    invoice = shop.invoice()["id"]
    link = shop.link()["id"]
    path = place.format(invoice=invoice, link=link)
    answer = shop.client.get(path)
    assert answer.status_code == 308
    # Behind a proxy that serves us below a path of its own, too.
    led_to = urljoin(f"https://pay.example/shop{path}", answer.headers["Location"])
    assert led_to == "https://pay.example/shop" + path.replace("/?", "?").removesuffix(
        "/"
    )
    page = shop.client.get(led_to.removeprefix("https://pay.example/shop"))
    assert (
        page.status_code
        == shop.client.get(path.replace("/?", "?").removesuffix("/")).status_code
    )


def test_no_slash_leads_to_another_host(shop):
    for path in ("/pay//evil.example/", "/link/%2f%2fevil.example/", "//evil.example/"):
        answer = shop.client.get(path)
        assert not answer.headers.get("Location", "../").startswith(("/", "http")), path
