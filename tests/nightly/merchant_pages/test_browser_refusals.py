"""A form that was not taken, on a phone: its first wrong field is on the screen, and why."""

import pytest
from merchant_browser import log_in

SMALL_PHONE = (390, 664)
# True if all of the element can be seen, above the bar of the sections.
IS_SEEN = """((it) => {
    const box = it.getBoundingClientRect(), bar = document.getElementById('sections');
    const end = Math.min(innerHeight, bar.getBoundingClientRect().top);
    return box.top >= 0 && box.bottom <= end;
})(document.getElementById(%r))"""
MAIL = "form[action$='/settings/mail']"


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without a script"])
def test_a_save_that_failed_shows_the_wrong_field_and_why(open_tab, counter, script):
    tab = log_in(open_tab(counter.root, size=SMALL_PHONE, script=script), counter)
    tab.go(f"{counter.root}/merchant/settings")
    tab.until("document.getElementById('address')")
    tab.click("#address")
    tab.type("nobody")
    tab.click(f"{MAIL} button")
    tab.until("document.getElementById('refused')")
    if not script:
        assert tab.ask(IS_SEEN % "refused") and not tab.ask(IS_SEEN % "address-problem")
        tab.click("#refused a")
    tab.until(f"{IS_SEEN % 'address'} && {IS_SEEN % 'address-problem'}")
    if script:
        assert tab.ask("document.activeElement.id") == "address"
