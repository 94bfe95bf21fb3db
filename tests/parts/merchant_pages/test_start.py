"""The first run: a link makes the first merchant in a browser, once."""

import json
import re

import pytest
import requests

from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants.sessions import start_url
from btcpay.values.networks import NETWORKS
from btcpay.web import rate_limits
from storage.queries import blocks, merchants, receivers
from tests.support.accounts import descriptor_of
from tests.support.builders import Live, at_once, new_xpub, open_shop
from tests.support.fake_esplora import serving_sandbox
from tests.support.hd_wallet import HdWallet
from tests.support.merchant_browser import FROM_THIS_SITE, ON
from tests.support.payer import Page

pytestmark = pytest.mark.both_databases
KEY = new_xpub()
PRIVATE = HdWallet.from_seed(bytes(32)).xprv()
SEED = "legal winner thank year wave sausage worth useful legal winner thank yellow"
TYPED = {"name": "Harbour Roasters", "currency": "EUR", "timezone": "Europe/Berlin",
    "language": "de", "key": KEY}  # fmt: skip


@pytest.fixture
def shop(tmp_path, ticker, clock):
    with open_shop(tmp_path, ticker.url, clock, empty=True, **ON) as shop:
        yield shop


def path_of(shop, token=""):
    """The path of a new link."""
    root = shop.service.settings.base_url
    return start_url(shop.service.db, root, token).removeprefix(root)


def press(shop, path, client=None, **more):
    return (client or shop.client).post(
        path, data={**TYPED, **more}, headers=FROM_THIS_SITE
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_form_then_three_addresses_then_a_shop_that_this_browser_is_logged_in_to(
    shop, language
):
    path = path_of(shop) + f"?lang={language}"
    client = shop.client
    shown = client.get(path)
    assert (
        shown.status_code == 200 and shown.headers["Referrer-Policy"] == "strict-origin"
    )
    compared = press(shop, path, client)
    addresses = re.findall(r">(bcrt1\w+)<", compared.text)
    assert len(addresses) == 3 and not shop.service.db.rows(merchants.ALL)
    again = press(shop, path, client, differ="1")
    assert Page(again.text).values["name"] == TYPED["name"]
    kept = {
        name: value
        for name, value in Page(compared.text).values.items()
        if name in TYPED
    }
    assert kept == TYPED
    made = client.post(path, data={**kept, "same": "1"}, headers=FROM_THIS_SITE)
    assert (made.status_code, made.headers["Location"]) == (
        303,
        f"../../merchant?lang={language}",
    )
    (row,) = shop.service.db.rows(merchants.ALL)
    assert (row.name, row.currency, row.timezone) == tuple(TYPED.values())[:3]
    assert shop.service.db.get(receivers.MAIL_OF, merchant_id=row.id).language == "de"
    shop.merchant_id = row.id
    assert shop.invoice()["deposit_address"] == addresses[0]
    today = Page(client.get("/merchant").text)
    assert "to-do" in today.texts
    assert client.get(path).status_code == press(shop, path).status_code == 404


def test_the_chain_is_begun_before_the_first_invoice_can_be_made(
    tmp_path, ticker, clock
):
    with serving_sandbox(tmp_path / "chain", clock) as (sandbox, root):
        environ = {**ON, "BLOCKTILL_EXPLORERS": root}
        with open_shop(tmp_path, ticker.url, clock, empty=True, **environ) as shop:
            assert press(shop, path_of(shop), same="1").status_code == 303
            assert blocks.tip_height(shop.service.db) == sandbox.chain.ledger.height


PROPOSED = {
    "de-AT,de;q=0.9": ("EUR", "de"),
    "en-GB": ("GBP", "en"),
    "tlh": ("USD", "en"),
}


@pytest.mark.parametrize("accepted", PROPOSED)
def test_the_browsers_currency_and_language_are_proposed(shop, accepted):
    page = shop.client.get(path_of(shop), headers={"Accept-Language": accepted})
    chosen = re.findall(
        r"<option(?: value=\"(\w+)\")?[^>]* selected>([^<]+)", page.text
    )
    currency, language = PROPOSED[accepted]
    assert [value or text for value, text in chosen] == [
        "p2wpkh",
        currency,
        "UTC",
        language,
    ]


REFUSED = {
    "no name": ({"name": " "}, "the merchant's name must be printable text"),
    "a private key as name": ({"name": f"My shop, {PRIVATE}"}, "reads like a private key"),
    "a private key as currency": ({"currency": PRIVATE}, ""),
    "seed words as name": ({"name": SEED}, "reads like a private key or seed words"),
    "no key": ({"key": ""}, "this is not an extended key"),
    "a private key in a file": ({"key": f'{{"xpub": "{KEY}", "xprv": "{PRIVATE}"}}'},
        "this holds a secret"),
    "seed words behind a key": ({"key": f"{KEY}\nMy seed: {SEED}"}, "this holds a secret"),
    "a name that no account has": ({"choose": "bip86"}, "no account of that name"),
    "seed words": ({"key": SEED},
        "these look like the seed words of a wallet"),
    "a key of another network": ({"key": new_xpub(NETWORKS["mainnet"])}, "is for mainnet"),
    "a currency that is none": ({"currency": "XXX"}, ""),
    "a zone that is none": ({"timezone": "Europe/Atlantis"}, ""),
    "a language that is none": ({"language": "tlh"}, "no such language"),
    "a kind that is none": ({"script": "p2x"}, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("same", [{}, {"same": "1"}], ids=["to compare", "to make"])
def test_what_merchant_add_refuses_is_refused_in_its_words(shop, case, same):
    change, expected = REFUSED[case]
    path = path_of(shop)
    answer = press(shop, path, **change, **same)
    problem = Page(answer.text).texts["problem"]
    assert answer.status_code == 400 and problem and expected in problem
    assert "sausage" not in answer.text and PRIVATE not in answer.text
    assert (
        not shop.service.db.rows(merchants.ALL)
        and shop.client.get(path).status_code == 200
    )


SEVERAL = {
    "bip49": {"desc": f"sh(wpkh({KEY}/0/*))"},
    "bip84": {"desc": f"wpkh({new_xpub()}/0/*)"},
    "bip48_2": {"_pub": "left out"},
}


def test_of_several_accounts_one_is_chosen_by_a_button_and_what_was_typed_is_kept(shop):
    path = path_of(shop)
    text = json.dumps(SEVERAL, indent=2)
    shown = press(shop, path, key=text)
    radios = [
        tag["value"]
        for name, tag in Page(shown.text).tags
        if name == "input" and tag.get("type") == "radio"
    ]
    addresses = re.findall(r">(2\w{30,}|bcrt1\w+)<", shown.text)
    assert radios == ["bip49", "bip84"] and len(addresses) == 2
    kept = Page(shown.text).values
    assert kept["key"] == text and kept["name"] == TYPED["name"]
    compared = press(shop, path, **{**kept, "choose": "bip84"})
    assert addresses[1] in compared.text and addresses[0] not in compared.text
    page = Page(compared.text)
    assert page.texts["reading"] == "one key, P2WPKH, from Coldcard's file"
    assert page.values["choose"] == "bip84"
    made = press(shop, path, **page.values, same="1")
    assert made.status_code == 303
    (row,) = shop.service.db.rows(merchants.ALL)
    shop.merchant_id = row.id
    assert shop.invoice()["deposit_address"] == addresses[1]


def test_a_long_file_is_read_and_what_was_left_out_is_said(shop):
    note = "a transaction, " * 1_000
    text = json.dumps(
        {"note": note, "wallet_type": "standard", "keystore": {"xpub": KEY}}
    )
    assert len(text) > 15_000
    shown = press(shop, path_of(shop), key=f"Here is it: {text}")
    page = Page(shown.text)
    assert page.texts["reading"] == "one key, P2PKH, from Electrum's file"
    assert page.texts["left-out"] == "the words beside the file"


def test_the_kind_that_was_chosen_is_used_for_a_key_that_does_not_say_it(shop):
    shown = press(shop, path_of(shop), script="p2tr")
    assert Page(shown.text).texts["reading"] == "one key, P2TR, from a key"
    assert shown.text.count("bcrt1p") == 3


def test_a_descriptor_says_who_must_sign(shop):
    shown = press(shop, path_of(shop), key=descriptor_of("p2wsh"))
    assert "2 of 3 keys must sign" in shown.text


def test_of_two_browsers_one_makes_the_shop(shop):
    path = path_of(shop)
    answers = at_once(
        8, lambda n: press(shop, path, name=f"shop {n}", key=new_xpub(), same="1")
    )
    assert sorted(answer.status_code for answer in answers) == [303] + [404] * 7
    assert len(shop.service.db.rows(merchants.ALL)) == 1


def test_a_wrong_token_is_not_found_and_counts_as_a_wrong_key(shop):
    old = path_of(shop)
    client = shop.client
    path = path_of(shop, "a-token-of-the-platform")
    assert path == "/merchant/start/a-token-of-the-platform"
    limit = rate_limits.FAILED_AUTH.limit
    found = {client.get(old).status_code for _ in range(limit)}
    assert found == {404} and client.get(path).status_code == 200
    assert client.get(old).status_code == 429


def test_the_link_is_the_newest_one_and_of_this_site_alone(shop):
    old = path_of(shop)
    path = path_of(shop)
    assert shop.client.get(old).status_code == 404
    foreign = shop.client.post(
        path, data=TYPED, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert foreign.status_code == 403 and not shop.service.db.rows(merchants.ALL)
    shop.add_merchant("by hand")
    assert shop.client.get(path).status_code == 404
    assert start_url(shop.service.db, shop.service.settings.base_url) is None


def test_the_pages_are_on_under_run_unless_the_setting_says_off(shop, tmp_path):
    for said, status in (({}, 401), ({"BLOCKTILL_MERCHANT_PAGES": "off"}, 404)):
        shop.environ.pop("BLOCKTILL_MERCHANT_PAGES", None)
        with Live(shop, tmp_path, words=("run",), **said) as live:
            assert (
                requests.get(f"{live.url}/merchant", timeout=60).status_code == status
            )
            assert ("To begin, open " in live.log()) == (status == 401)


def test_plugins_are_answered_under_run_unless_the_setting_says_off(shop, tmp_path):
    for environ, status in (({}, 401), ({"BLOCKTILL_GREENFIELD": "off"}, 404)):
        with Live(shop, tmp_path, words=("run",), **environ) as live:
            url = f"{live.url}/api-keys/authorize"
            assert requests.get(url, timeout=60).status_code == status


def test_a_token_that_was_set_is_in_no_log_and_opens_the_page(shop, tmp_path):
    token = "hunter2-0123456789-hunter2"
    with Live(shop, tmp_path, words=("run",), BLOCKTILL_SETUP_TOKEN=token) as live:
        assert (
            requests.get(f"{live.url}/merchant/start/{token}", timeout=60).status_code
            == 200
        )
        assert "/merchant/start/*** (***: BLOCKTILL_SETUP_TOKEN)" in live.log()
        assert token not in live.log()
