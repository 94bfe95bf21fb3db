"""The page of a shop's order: who may frame it, what it tells that shop, and its addresses."""

AUTOMATICALLY = {
    "redirectURL": "https://shop.example/thanks",
    "redirectAutomatically": True,
}


def ancestors(page):
    return page.headers["Content-Security-Policy"].partition("frame-ancestors ")[2]


def test_an_orders_page_is_framed_by_its_shop_alone_and_others_by_nobody(greenfield):
    client = greenfield.shop.client
    shop = greenfield.shop
    asked = greenfield.order(checkout=AUTOMATICALLY)
    page = client.get(f"/pay/{asked['id']}")
    assert ancestors(page) == "https://shop.example:443"
    assert 'data-shop="https://shop.example:443" data-leads-back="true"' in page.text
    page = client.get(f"/pay/{greenfield.order()['id']}")
    assert "data-shop" in page.text and 'data-leads-back="false"' in page.text
    page = client.get(f"/pay/{shop.invoice()['id']}")
    assert ancestors(page) == "'none'" and "data-shop" not in page.text


def test_the_modal_has_its_script_and_its_address(greenfield):
    client = greenfield.shop.client
    asked = greenfield.order()
    script = client.get("/modal/btcpay.js?ver=2.8.0")
    assert script.mimetype == "text/javascript" and "window.btcpay" in script.text
    assert script.headers["Cache-Control"] == "no-store"
    for path, up in (
        (f"/invoice?id={asked['id']}&lang=de", ""),
        (f"/i/{asked['id']}?lang=de", "../"),
    ):
        answer = client.get(path)
        found = answer.status_code, answer.headers["Location"]
        assert found == (302, f"{up}pay/{asked['id']}?lang=de")
    for id in ("", "inv_x", "https://elsewhere.example"):
        assert client.get(f"/invoice?id={id}").status_code == 404
