"""A distant customer is billed and pays; the month has it; a card is printed: in a real browser."""

import pytest
from browser import DESK, PHONE
from merchant_browser import log_in

MIDDLE = """(() => {
    const code = document.querySelector('#qr svg').getBoundingClientRect();
    const card = document.querySelector('#card').getBoundingClientRect();
    return [code.x + code.width / 2 - card.x - card.width / 2, code.width];
})()"""
TEN_CM = 10 / 2.54 * 96  # in pixels of a style sheet


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without a script"])
def test_a_distant_customer_is_billed_pays_and_is_in_the_month(open_tab, counter, script):
    tab = log_in(open_tab(counter.root, script=script), counter)
    tab.go(f"{counter.root}/merchant/invoices")
    tab.until("document.getElementById('new')")
    tab.click("#new")
    tab.until("document.getElementById('new-invoice')")
    tab.click("#reference")
    tab.type("A-17")
    tab.click("#make")
    tab.until("document.getElementById('amount-problem')")
    assert tab.ask("document.getElementById('reference').value") == "A-17"
    tab.click("#amount")
    tab.type("25")
    tab.click("#make")
    tab.until("document.getElementById('mail')")
    id = tab.ask("location.pathname").rpartition("/")[2]
    invoice = counter.shop.get(f"/invoices/{id}").json
    tab.click("#code summary")
    assert tab.qr().text == invoice["pay_url"]
    assert id in tab.ask("document.getElementById('mail').href")
    counter.pay(invoice)
    counter.mine()
    tab.go(f"{counter.root}/merchant")
    tab.until("document.getElementById('sections')")
    tab.click("#sections a[href$='/month']")
    tab.until("document.getElementById('this-USD')")
    assert "$0.00" not in tab.text("this-USD") and "So far" in tab.text("this-USD")
    tab.click(".pager a")
    tab.until("document.querySelector('.pager [rel=next]')")
    assert "$0.00" in tab.text("this-USD")


def test_the_code_of_a_card_is_in_the_middle_and_ten_centimetres_on_paper(open_tab, counter):
    link = counter.shop.link(title="Tip jar")
    for size in (PHONE, DESK):
        tab = log_in(open_tab(counter.root, size=size), counter)
        tab.go(f"{counter.root}/merchant/links/{link['id']}/card")
        tab.until("document.querySelector('#qr svg')")
        assert abs(tab.ask(MIDDLE)[0]) < 1 and tab.qr().text == link["link_url"]
    tab.call("Emulation.setEmulatedMedia", media="print")
    off_middle, width = tab.ask(MIDDLE)
    assert abs(off_middle) < 1 and abs(width - TEN_CM) < 3
