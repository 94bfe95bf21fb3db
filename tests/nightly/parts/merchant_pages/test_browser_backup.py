"""A backup on a phone: downloaded from one service, restored into a second one."""

import pytest
import requests

from btcpay.merchants.account import derive
from btcpay.merchants.first_run import start_url
from storage.queries import merchants
from tests.support.axe import axe_script, look
from tests.support.browser import DESK, PHONE, SMALL
from tests.support.builders import Live, open_shop, until
from tests.support.fake_esplora import Till
from tests.support.merchant_browser import ON
from tests.support.other_database import backed_up, change

PASSWORD = "Harbour pilots sleep late"
SET = {"BLOCKTILL_OWNER_PASSWORD": PASSWORD}


def press(tab, selector, then):
    tab.click(selector)
    tab.until(then)


def log_in(tab, live):
    """As the owner, who has nothing but the password."""
    tab.go(f"{live.url}/merchant")
    tab.fill(password=PASSWORD)
    tab.click("#log-in")


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_backup_goes_from_one_shop_to_another_and_the_next_address_is_behind(
    till, tmp_path, ticker, clock, open_tab, script
):
    shop = till.shop
    paid = shop.invoice(description="Tea")
    till.confirm(paid)
    network = till.settings.network
    chain = {"BLOCKTILL_EXPLORERS": till.environ["BLOCKTILL_EXPLORERS"]}
    folders = [tmp_path / name for name in ("old", "new")]
    for folder in folders:
        folder.mkdir()
    with Live(shop, folders[0], words=("run", "--every", "1"), **SET) as live:
        tab = open_tab(live.url, size=PHONE, script=script)
        log_in(tab, live)
        tab.until("document.getElementById('to-do')")
        tab.download_to(tmp_path)
        press(tab, "#to-do a[href*='/backup']", "document.getElementById('download')")
        tab.click("#download")
        (file,) = until(lambda: list(tmp_path.glob("blocktill-*.db")), "the download")
        size = int(
            until(lambda: file.exists() and file.stat().st_size, "the whole file")
        )
        assert size > 4096
    later = shop.invoice(description="after the backup")
    till.pay_in_block(later)
    account = shop.service.db.rows(merchants.ALL)[0].descriptor
    with (
        open_shop(folders[1], ticker.url, clock, empty=True, **chain) as second,
        Live(second, folders[1], words=("run", "--every", "1"), **SET) as live,
    ):
        tab = open_tab(live.url, size=PHONE, script=script)
        log_in(tab, live)
        tab.until("document.getElementById('restore')")
        press(tab, "#restore", "document.getElementById('backup')")
        tab.choose_file("#backup", file)
        tab.click("#examine")
        tab.until("document.getElementById('agree')")
        for index in range(3):
            assert derive(account, index, network) in tab.ask("document.body.innerText")
        press(tab, "#agree", "document.getElementById('service')")
        tab.go(f"{live.url}/merchant/invoices")
        assert "Tea" in tab.text("main") and "after the backup" not in tab.text("main")
        second.read_key, second.write_key = shop.read_key, shop.write_key
        again = Till(second, till.sandbox, clock)
        assert again.look(paid)["status"] == "paid"
        order = {"Authorization": f"Bearer {shop.write_key}"}
        made = requests.post(
            f"{live.url}/api/v1/invoices",
            json={"amount_usd": 25},
            headers=order,
            timeout=60,
        ).json()
        # One beyond the backup was used, and a hundred more are left out.
        assert made["deposit_address"] == derive(account, 102, network)
        again.pay(made)
        again.mine()
        # A key may read 120 times a minute.
        until(lambda: again.look(made)["status"] == "paid", "the check", every_s=1)
        tab.call("Network.clearBrowserCookies")
        log_in(tab, live)
        tab.until("document.getElementById('service')")


@pytest.mark.parametrize("language", ["en", "ar"])
def test_the_pages_of_a_restore_fit_in_both_themes_and_axe_finds_nothing(
    till, tmp_path, ticker, clock, open_tab, language
):
    till.shop.invoice()
    file = backed_up(till, tmp_path / "monday.db")
    change(
        file,
        "INSERT INTO receiver (id, merchant_id, transport, command, created_ms)"
        " SELECT 'whk_1', id, 'command', '/usr/local/bin/tell-the-kitchen', 0"
        " FROM merchant",
    )
    wrong = tmp_path / "wrong.db"
    wrong.write_bytes(b"hello" * 3000)
    chain = {"BLOCKTILL_EXPLORERS": till.environ["BLOCKTILL_EXPLORERS"]}
    folder = tmp_path / "new"
    folder.mkdir()
    axe = axe_script()
    with (
        open_shop(folder, ticker.url, clock, empty=True, **chain, **ON) as second,
        Live(second, folder) as live,
    ):
        tab = open_tab(live.url)
        link = start_url(second.service.db, live.url)
        tab.go(f"{link}?lang={language}")
        press(tab, "#restore", "document.getElementById('backup')")
        faults = look(tab, axe, (DESK, SMALL))
        for chosen, shown in ((wrong, "problem"), (file, "agree")):
            tab.choose_file("#backup", chosen)
            press(tab, "#examine", f"document.getElementById('{shown}')")
            faults += look(tab, axe, (DESK, SMALL))
        assert tab.ask("document.documentElement.lang") == language
        assert faults == []
