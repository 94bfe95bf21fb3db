"""The page of a shop's order: who may frame it, what it tells that shop, and the way back."""

import json

from builders import finish, pay

BACK = "https://shop.example/thanks?order={InvoiceId}"
AUTOMATICALLY = {"redirectURL": BACK, "redirectAutomatically": True}


def ancestors(page):
    return page.headers["Content-Security-Policy"].partition("frame-ancestors ")[2]


def test_an_orders_page_is_framed_by_its_shop_alone_and_others_by_nobody(greenfield):
    client, shop = greenfield.shop.client, greenfield.shop
    asked = greenfield.order(checkout=AUTOMATICALLY)
    page = client.get(f"/pay/{asked['id']}")
    assert ancestors(page) == "https://shop.example:443"
    assert 'data-shop="https://shop.example:443" data-leads-back="true"' in page.text
    page = client.get(f"/pay/{greenfield.order()['id']}")
    assert "data-shop" in page.text and 'data-leads-back="false"' in page.text
    page = client.get(f"/pay/{shop.invoice()['id']}")
    assert ancestors(page) == "'none'" and "data-shop" not in page.text


def test_every_state_of_an_orders_page_leads_back(greenfield):
    shop = greenfield.shop
    moves = {
        "waiting": lambda _: None,
        "partial": lambda row: pay(shop, row, 1000),
        "seen": lambda row: pay(shop, row, confirmed=False),
        "paid": lambda row: pay(shop, row),
        "expired": lambda row: finish(shop, row, "expired"),
        "canceled": lambda row: finish(shop, row, "canceled"),
        "overdue": lambda _: shop.clock.move(hours=2),
    }
    for state, move in moves.items():
        asked = greenfield.order(checkout={"redirectURL": BACK})
        (listed,) = json.loads(shop.get("/invoices?limit=1").text)["data"]
        move(listed)
        text = shop.client.get(f"/pay/{asked['id']}").text
        assert f'data-state="{state}"' in text
        assert f'href="https://shop.example/thanks?order={asked["id"]}"' in text, state


def test_the_modal_has_its_script_and_its_address(greenfield):
    client, asked = greenfield.shop.client, greenfield.order()
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
