"""Irreversible actions ask once, even without a script, and no page offers them in passing."""

import re

from tests.support.merchant_browser import MerchantBrowser

ENDS = {
    "/sessions": ("/end", "/end-others"),
    "/keys": ("/revoke",),
    "/webhooks": ("/remove",),
}


def test_what_ends_a_session_a_key_or_a_webhook_is_folded_behind_what_it_means(browser):
    MerchantBrowser(browser.shop).log_in()  # another device
    browser.post("/keys", press="p", scope="write", name="Shop")
    browser.post("/webhooks", press="p", url="https://shop.example.com/paid")
    for path, ends in ENDS.items():
        source = browser.page(path).source
        folded = re.findall("<details.*?</details>", source, re.DOTALL)
        for end in ends:
            assert (
                source.count(f'{end}"') == sum(f'{end}"' in one for one in folded) > 0
            ), end
        for one in folded:
            if "<form" in one:
                assert (
                    one.index("</summary>") < one.index("<p>") < one.index("<button")
                ), one
    assert "Every program that uses this key is refused" in browser.page("/keys").source
    assert "what is waiting is dropped" in browser.page("/webhooks").source
    assert "you need a new login link" in browser.page("/sessions").source


def test_no_page_but_the_devices_logs_anybody_out(browser):
    for path in ("", "/till", "/invoices", "/month", "/settings", "/keys", "/webhooks"):
        assert "Log out" not in browser.page(path).source, path
    assert browser.post("/logout").status_code == 404
