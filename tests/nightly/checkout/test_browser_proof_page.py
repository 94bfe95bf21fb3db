"""The page of a proof before a payer: in each language and theme, and where it cannot check."""

import pytest

from btcpay.languages.catalogs import LANGUAGES
from tests.support.axe import axe_script, faults, misfits
from tests.support.browser import DESK, PHONE, SMALL


@pytest.fixture(scope="module")
def invoice(counter):
    """One that two payments have paid."""
    made = counter.shop.invoice(description="Two bags of coffee")
    for sats in (10_000, made["amount_sats"] - 10_000):
        counter.till.confirm(made, sats)
    return made


def prove(tab):
    tab.until("document.getElementById('check').checkVisibility()")
    tab.click("#check")
    tab.until("document.querySelectorAll('.verdict.holds').length === 2")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_proof_page_looks_right_and_reads_right_to_those_who_listen(
    open_tab, counter, invoice, theme
):
    tab = open_tab(counter.root)
    axe = axe_script()
    for size in (DESK, PHONE, SMALL):
        tab.emulate(size, theme)
        tab.go(f"{counter.page(invoice)}/proof")
        prove(tab)
        tab.ask(
            "document.querySelectorAll('details').forEach((it) => { it.open = true; })"
        )
        assert misfits(tab, size[0]) == []
        assert faults(tab, axe) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_verdict_stands_on_the_first_screen_of_a_phone(
    open_tab, counter, invoice, language
):
    tab = open_tab(counter.root, size=(390, 664))
    tab.go(f"{counter.page(invoice)}/proof?lang={language}")
    prove(tab)
    bottom = "document.querySelector('.verdict').getBoundingClientRect().bottom"
    assert tab.ask("scrollY") == 0 and 0 < tab.ask(bottom) < 664
    tab.emulate(SMALL)
    assert misfits(tab, SMALL[0]) == []


def test_one_wrong_document_among_two_is_told_from_the_other(
    open_tab, counter, invoice
):
    tab = open_tab(counter.root)
    tab.go(f"{counter.page(invoice)}/proof")
    prove(tab)
    one_as_other = "(([one, other]) => { one.textContent = other.textContent; })"
    tab.ask(f"{one_as_other}(document.querySelectorAll('pre'))")
    tab.click("#check")
    tab.until("document.querySelector('.verdict.problem')")
    verdicts = tab.ask(
        "[...document.querySelectorAll('.verdict')].map((it) => it.textContent)"
    )
    assert verdicts == [tab.text("flaw-another"), tab.text("holds")]
    assert tab.text("announce") == " ".join(verdicts)


def test_a_page_that_came_without_https_says_why_it_cannot_check(
    open_tab, counter, invoice
):
    root = counter.root.replace("127.0.0.1", "shop.test")
    tab = open_tab(root)
    tab.go(f"{root}/pay/{invoice['id']}/proof")
    tab.until("document.getElementById('insecure').checkVisibility()")
    assert not tab.is_shown("check")
    assert "not opened over a secure connection" in tab.text("insecure")
    assert tab.is_shown("command") and tab.is_shown("download")


def test_without_javascript_it_names_the_command_and_offers_the_document(
    open_tab, counter, invoice
):
    tab = open_tab(counter.root, script=False)
    tab.go(f"{counter.page(invoice)}/proof")
    assert not tab.is_shown("check") and not tab.is_shown("insecure")
    assert tab.text("command") == "blocktill verify-proof proof.json" and tab.is_shown(
        "command"
    )
    assert tab.is_shown("download")
