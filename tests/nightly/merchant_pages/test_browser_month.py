"""A day of a shop without a script, and where a card has its code: in a real browser."""

from browser import DESK, PHONE
from merchant_browser import log_in
from shop_walk import PHONE as TOUCHED
from shop_walk import Walk, play, set_up

MIDDLE = """(() => {
    const code = document.querySelector('#qr svg').getBoundingClientRect();
    const card = document.querySelector('#card').getBoundingClientRect();
    return [code.x + code.width / 2 - card.x - card.width / 2, code.width];
})()"""
TEN_CM = 10 / 2.54 * 96  # in pixels of a style sheet


def test_a_day_of_a_shop_by_one_link_and_a_phone(new_counter, open_tab, tmp_path):
    """With a script its parts are in tests/trips/test_browser.py and test_browser_till.py."""
    play(open_tab, new_counter, tmp_path)


def test_a_shop_is_set_up_while_a_script_shows_what_is_typed(new_counter, open_tab, tmp_path):
    tab = log_in(open_tab(new_counter.root, size=TOUCHED), new_counter)
    set_up(Walk(tab, new_counter), tmp_path / "logo.png", script=True)


def test_the_code_of_a_card_is_in_the_middle_and_ten_centimetres_on_paper(open_tab, counter):
    link = counter.shop.link(title="Tip jar", description="Thank you " * 40)
    for size in (PHONE, DESK):
        tab = log_in(open_tab(counter.root, size=size), counter)
        tab.go(f"{counter.root}/merchant/links/{link['id']}/card")
        tab.until("document.querySelector('#qr svg')")
        assert abs(tab.ask(MIDDLE)[0]) < 1 and tab.qr().text == link["link_url"]
    tab.emulate(DESK, "dark", media="print")
    off_middle, width = tab.ask(MIDDLE)
    assert abs(off_middle) < 1 and abs(width - TEN_CM) < 3 and tab.qr().text == link["link_url"]
    assert not tab.is_shown("print") and not tab.is_shown("languages")
    assert tab.paper_pages() == 1
