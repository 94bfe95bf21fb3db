"""The mail server, set on a phone: the test mail arrives, and the check mails through it."""

import pytest

from tests.support.axe import axe_script, faults, misfits
from tests.support.mail_server import PASSWORD, USER, MailServer
from tests.support.merchant_browser import log_in

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while")
PHONE = (320, 568)


@pytest.fixture
def server(tmp_path):
    with MailServer(tmp_path, login=True) as started:
        yield started


@pytest.mark.parametrize(
    "script", [True, False], ids=["with a script", "without a script"]
)
def test_a_phone_sets_the_mail_server_and_the_test_mail_arrives(
    new_counter, server, open_tab, script
):
    tab = log_in(open_tab(new_counter.root, size=PHONE, script=script), new_counter)
    tab.click("#to-do a[href*='/settings/mail-server']")
    tab.until("document.getElementById('save')")
    assert misfits(tab, PHONE[0]) == []
    tab.fill(host="127.0.0.1", port=str(server.port), user=USER, password="wrong")
    tab.ask("document.getElementById('encryption').value = 'starttls'")
    tab.fill(sender="tea@seller")
    tab.click("#save")
    tab.until("document.getElementById('sender-problem')")
    assert tab.ask("document.getElementById('password').value") == ""
    assert tab.ask("document.getElementById('encryption').value") == "starttls"
    tab.fill(sender="tea@seller.de", sender_name="Tea & Co", password="wrong")
    tab.click("#save")
    tab.until("document.getElementById('test')")
    tab.fill(to="owner@seller.de")
    tab.click("#test")
    tab.until("document.getElementById('outcome')")
    assert "535 5.7.8" in tab.text("answer")
    assert misfits(tab, PHONE[0]) == []
    tab.fill(password=PASSWORD)
    tab.click("#save")
    tab.until("location.search.includes('saved')")
    tab.fill(to="owner@seller.de")
    tab.click("#test")
    tab.until("document.getElementById('outcome')")
    assert tab.text("answer") == "250 OK"
    assert misfits(tab, PHONE[0]) == []
    (mail,) = server.taken
    assert (mail.to, mail.user) == (["owner@seller.de"], USER)
    if script:
        assert faults(tab, axe_script()) == []
    assert PASSWORD not in new_counter.live.log()
