def test_an_invoice_is_created_and_read_back(shop):
    made = shop.invoice(25, description="Tea")
    assert shop.get(f"/invoices/{made['id']}").json == made
    assert shop.get("/balance").json["confirmed_usd"] == 0
