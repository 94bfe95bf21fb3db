"""How people come to the merchant's pages who type the address."""


def test_a_slash_at_the_end_leads_to_the_same_page(open_shops):
    shop = open_shops(BTCPAY_MERCHANT_PAGES="on")
    answer = shop.client.get("/merchant/?lang=de")
    assert answer.status_code == 302 and answer.headers["Location"] == "../merchant?lang=de"
    assert shop.client.post("/merchant/").status_code == 405
