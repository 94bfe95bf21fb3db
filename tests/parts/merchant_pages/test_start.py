"""The first run: a link makes the first merchant in a browser, once."""

import html
import json
import re
from contextlib import ExitStack
from io import BytesIO

import pytest
import requests

from btcpay.chain.account_start import COMMAND_S
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants.account import derive
from btcpay.merchants.first_run import start_url
from btcpay.merchants.sessions import end_all
from btcpay.merchants.wallet_text.clean import MAX_CHARS
from btcpay.parts.merchant_pages import start_steps
from btcpay.parts.merchant_pages.start_steps import LISTED_WALLETS
from btcpay.values.networks import NETWORKS
from btcpay.web import rate_limits
from storage.queries import blocks, merchants, receivers
from tests.support.accounts import descriptor_of
from tests.support.builders import Live, at_once, new_xpub, open_shop
from tests.support.fake_esplora import OWN_EXPLORER, Till, serving_sandbox
from tests.support.first_run import addresses_of
from tests.support.hd_wallet import HdWallet
from tests.support.merchant_browser import FROM_THIS_SITE, ON
from tests.support.payer import Page
from tests.support.used_account import use

pytestmark = pytest.mark.both_databases
KEY = new_xpub()
PRIVATE = HdWallet.from_seed(bytes(32)).xprv()
SEED = "legal winner thank year wave sausage worth useful legal winner thank yellow"
TYPED = {"name": "Harbour Roasters", "currency": "EUR", "timezone": "Europe/Berlin",
    "language": "de", "key": KEY, "script": "p2wpkh", "skip": "0"}  # fmt: skip
COMPARED = {"next_index": "0", "used_before": "0"}


@pytest.fixture
def shop(tmp_path, ticker, clock):
    with open_shop(tmp_path, ticker.url, clock, empty=True, **ON) as shop:
        yield shop


def path_of(shop, token=""):
    """The path of a new link."""
    root = shop.service.settings.base_url
    return start_url(shop.service.db, root, token).removeprefix(root)


def press(shop, path, client=None, **more):
    """The form with its button, or with `same` that of the three addresses."""
    data = {**TYPED, **more}
    if "same" in more:
        data = COMPARED | data
    return (client or shop.client).post(path, data=data, headers=FROM_THIS_SITE)


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
    wallet = press(shop, path, client, step="shop", key="", script="")
    assert Page(wallet.text).values["name"] == TYPED["name"]
    assert not Page(wallet.text).texts["key"]
    compared = press(shop, path, client)
    addresses = addresses_of(compared.text)
    assert len(addresses) == 3 and not shop.service.db.rows(merchants.ALL)
    again = press(shop, path, client, differ="1")
    assert Page(again.text).values["name"] == TYPED["name"]
    kept = Page(compared.text).values
    assert kept.items() >= (TYPED | COMPARED).items()
    made = client.post(path, data={**kept, "same": "1"}, headers=FROM_THIS_SITE)
    assert (made.status_code, made.headers["Location"]) == (
        303,
        f"../../merchant?lang={language}",
    )
    (row,) = shop.service.db.rows(merchants.ALL)
    assert (row.name, row.currency, row.timezone) == tuple(TYPED.values())[:3]
    assert (row.next_index, row.used_before) == (0, 0)
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


@pytest.fixture
def open_till(tmp_path, ticker, clock):
    """Opens a shop without a merchant, whose explorer knows a chain."""
    with ExitStack() as stack:

        def open_till(**environ):
            chain = serving_sandbox(tmp_path / "chain", clock)
            sandbox, root = stack.enter_context(chain)
            environ = {**ON, "BLOCKTILL_EXPLORERS": root, **environ}
            shop = open_shop(tmp_path, ticker.url, clock, empty=True, **environ)
            return Till(stack.enter_context(shop), sandbox, clock)

        yield open_till


@pytest.fixture
def till(open_till, monkeypatch):
    """On a busy machine hundreds of addresses take longer than a page may wait."""
    monkeypatch.setattr(start_steps, "PAGE_S", COMMAND_S)
    return open_till(**OWN_EXPLORER)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["p2wpkh", "p2wsh"])
def test_the_first_run_begins_behind_the_used_addresses_of_the_account(till, form):
    shop = till.shop
    descriptor = descriptor_of(form)
    use(till, descriptor)
    compared = press(shop, path_of(shop), key=descriptor, skip="")
    page = Page(compared.text)
    said = " ".join(page.texts["beginning"].split())
    assert "was used up to number 312: the shop begins at 313." in said
    assert "with a gap limit of 20 or more" in said
    assert "the receiving addresses 313 to 315, counted from 0" in compared.text
    assert "Does another shop still wait for payments" in compared.text
    network = till.settings.network
    addresses = [derive(descriptor, index, network) for index in range(313, 316)]
    assert addresses_of(compared.text) == addresses
    assert page.attributes["addresses"]["start"] == "313"
    press(shop, path_of(shop), **page.values | {"same": "1"})
    (row,) = shop.service.db.rows(merchants.ALL)
    assert (row.next_index, row.used_before) == (313, 313)
    shop.merchant_id = row.id
    assert shop.invoice()["deposit_address"] == addresses[0]


@pytest.mark.slow
def test_a_number_that_was_typed_is_moved_behind_the_used_addresses(till):
    descriptor = descriptor_of("p2wpkh")
    use(till, descriptor, [0, 40])
    for typed, index, used_before in (("30", 41, 41), ("90", 90, 41)):
        answer = press(till.shop, path_of(till.shop), key=descriptor, skip=typed)
        values = Page(answer.text).values
        assert (values["next_index"], values["used_before"]) == (
            str(index),
            str(used_before),
        )
        assert ("begins at number 90, as you said" in answer.text) == (index == 90)


def test_an_unused_account_begins_at_the_first_address(till):
    compared = press(till.shop, path_of(till.shop), skip="")
    said = Page(compared.text).texts["beginning"]
    assert said.strip() == (
        "None of the first 100 addresses of this account was used before."
    )


def test_where_no_explorer_answers_nothing_is_called_unused_and_a_number_is_asked_for(
    shop,
):
    path = path_of(shop)
    asked = press(shop, path, skip="")
    page = Page(asked.text)
    assert asked.status_code == 400 and "bcrt1" not in asked.text
    assert "not known whether this account was used" in page.texts["undecided"]
    assert page.texts["key"].strip() == KEY and page.values["name"] == TYPED["name"]
    compared = press(shop, path, skip="7")
    said = Page(compared.text).texts["beginning"]
    assert "The shop begins at number 7, as you said." in said
    assert "Not all of its addresses could be looked at:" in said
    assert "None of the first" not in said and "was used" not in said
    assert not shop.service.db.rows(merchants.ALL)


def test_a_search_that_is_cut_short_says_how_far_it_came_and_goes_on(
    open_till,
):
    till = open_till(BLOCKTILL_EXPLORER_CALLS_PER_HOUR="50")
    shop = till.shop
    descriptor = descriptor_of("p2wpkh")
    use(till, descriptor, [0, 19, 39])
    answer = press(shop, path_of(shop), key=descriptor, skip="")
    said = " ".join(Page(answer.text).texts["undecided"].split())
    assert re.match("Only 4[0-9] addresses of this account could be looked at.", said)
    assert "up to number 39 at least; with 40 below, the search goes on" in said


def test_nodes_alone_cannot_be_asked_and_the_form_says_so(open_till):
    nodes = {"BLOCKTILL_EXPLORERS": "none", "BLOCKTILL_PEERS": "127.0.0.1:9"}
    shop = open_till(**nodes).shop
    path = path_of(shop)
    hint = Page(press(shop, path, step="shop").text).texts["skip-hint"]
    assert "The blockchain cannot be searched from here" in hint
    asked = press(shop, path, skip="")
    assert "no explorer is set" in Page(asked.text).texts["undecided"]
    assert "begins at number 300" in press(shop, path, skip="300").text


def test_no_merchant_is_made_of_addresses_that_were_not_compared(shop):
    path = path_of(shop)
    for number in ("", "x", "-1", "12345678901"):
        answer = press(shop, path, same="1", next_index=number)
        assert answer.status_code == 200 and "addresses" in Page(answer.text).attributes
    assert not shop.service.db.rows(merchants.ALL)


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
    assert [value or text for value, text in chosen] == [currency, "UTC", language]


FILE_WITH_A_SECRET = f'{{"xpub": "{KEY}", "xprv": "{PRIVATE}"}}'
REFUSED = {
    "no name": ({"name": " "}, "name-problem", "Please give the shop a name."),
    "a long name": ({"name": "x" * 61}, "name-problem", "at most 60 characters"),
    "a name with a mark of direction": (
        {"name": "Tea \u202e house"}, "name-problem", "cannot be seen (U+202E)"),
    "a private key as name": (
        {"name": f"My shop, {PRIVATE}"}, "name-problem", "reads like a private key"),
    "seed words as name": ({"name": SEED}, "name-problem", "reads like a private key"),
    "a private key as currency": ({"currency": PRIVATE}, "currency-problem", "from the list"),
    "a currency that is none": ({"currency": "XXX"}, "currency-problem", "from the list"),
    "a zone that is none": (
        {"timezone": "Europe/Atlantis"}, "timezone-problem", "from the list"),
    "a language that is none": ({"language": "tlh"}, "language-problem", "from the list"),
    "no key": ({"key": ""}, "problem", "Please paste what your wallet shows"),
    "a private key in a file": (
        {"key": FILE_WITH_A_SECRET}, "problem", "This holds a private key."),
    "a private key beside the file": (
        {"key": PRIVATE, "file": KEY}, "problem", "This holds a private key."),
    "seed words behind a key": (
        {"key": f"{KEY}\nMy seed: {SEED}"}, "problem", "seed words of a wallet"),
    "seed words": ({"key": SEED}, "problem", "seed words of a wallet"),
    "seed words and a wrong number": (
        {"key": SEED, "skip": "x"}, "problem", "seed words of a wallet"),
    "a name that no account has": (
        {"choose": "bip86"}, "problem", "cannot use this account: the text has no account"),
    "a key of the real network": (
        {"key": new_xpub(NETWORKS["mainnet"])}, "problem",
        "This key is of the real Bitcoin network; this shop is a test shop."),
    "a part of a key": ({"key": KEY[:-1]}, "problem", "Something in this is missing"),
    "an address": (
        {"key": derive(descriptor_of("p2wpkh"), 0, NETWORKS["regtest"])}, "problem",
        "This is a single address."),
    "an animated code": ({"key": "ur:crypto-account/oeadcy"}, "problem", "moving code"),
    "words": ({"key": "see attachment"}, "problem", "No account was found in this."),
    "more than is examined": (
        {"key": "x" * (MAX_CHARS + 1)}, "problem", "too long for a wallet's export"),
    "an unknown path": (
        {"key": f"{KEY}/7/*"}, "problem", "cannot use this account: the path after the key"),
    "a number that is none": ({"skip": "-1"}, "skip-problem", "from 0 to 1,000,000"),
    "a number that is too high": (
        {"skip": "1000001"}, "skip-problem", "from 0 to 1,000,000"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("same", [{}, {"same": "1"}], ids=["to compare", "to make"])
def test_a_refusal_stands_where_it_belongs_and_speaks_of_the_shop(shop, case, same):
    change, place, expected = REFUSED[case]
    path = path_of(shop)
    answer = press(shop, path, **change, **same)
    problem = " ".join(Page(answer.text).texts[place].split())
    assert answer.status_code == 400 and expected in problem
    assert "BLOCKTILL" not in answer.text and "regtest." not in problem
    assert "sausage" not in answer.text and PRIVATE not in answer.text
    assert (
        not shop.service.db.rows(merchants.ALL)
        and shop.client.get(path).status_code == 200
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refusal_is_in_the_pages_language_and_what_was_typed_stays(shop, language):
    path = path_of(shop) + f"?lang={language}"
    foreign = new_xpub(NETWORKS["mainnet"])
    page = Page(press(shop, path, key=foreign, wallet="Sparrow").text)
    is_english = "real Bitcoin network" in page.texts["problem"]
    assert page.texts["problem"].strip() and is_english == (language == "en")
    assert page.texts["key"] == foreign and page.values["name"] == TYPED["name"]
    checked = [tag for name, tag in page.tags if name == "input" and "checked" in tag]
    assert [tag["value"] for tag in checked] == ["Sparrow"]
    back = press(shop, path, key=foreign, skip="9", back="shop")
    kept = Page(back.text).values
    assert (kept["key"], kept["skip"], kept["step"]) == (foreign, "9", "shop")


def test_a_step_back_keeps_what_was_typed_but_for_secrets(shop):
    path = path_of(shop)
    for change in ({"back": "shop"}, {"back": "wallet"}, {"differ": "1"}):
        answer = press(shop, path, key=SEED, name=f"My shop, {PRIVATE}", **change)
        assert "sausage" not in answer.text and PRIVATE not in answer.text
    differed = press(shop, path, differ="1")
    assert "No shop was created." in Page(differed.text).texts["differed"]
    back = Page(press(shop, path, back="wallet").text)
    assert "differed" not in back.texts and back.texts["key"] == KEY


def test_a_text_that_is_too_long_to_be_examined_is_not_shown_again(shop):
    path = path_of(shop)
    for length, is_shown in ((MAX_CHARS, True), (MAX_CHARS + 1, False)):
        page = Page(press(shop, path, key="x" * length, back="wallet").text)
        assert bool(page.texts["key"]) == is_shown


def test_each_step_marks_how_far_it_is(shop):
    path = path_of(shop)
    first = shop.client.get(path).text
    wallet = press(shop, path, step="shop").text
    several = press(shop, path, key=json.dumps(SEVERAL)).text
    script = press(shop, path, script="").text
    compare = press(shop, path).text
    for text, done in (
        (first, 0),
        (wallet, 1),
        (several, 1),
        (script, 1),
        (compare, 2),
    ):
        items = [tag for name, tag in Page(text).tags if name == "li"][:3]
        marks = [tag.get("class") or tag.get("aria-current") for tag in items]
        assert marks == (["done"] * done + ["step", None, None])[:3]


def test_no_link_to_another_language_loses_what_was_typed(shop):
    path = path_of(shop)
    several = json.dumps(SEVERAL)
    for change in ({"step": "shop"}, {"key": several}, {"script": ""}, {}):
        page = Page(press(shop, path, **change).text)
        links = [tag for name, tag in page.tags if name == "a" and "hreflang" in tag]
        assert not links, change
    assert "hreflang" in shop.client.get(path).text


def test_only_the_page_that_scans_may_use_the_camera(shop):
    path = path_of(shop)
    assert (
        press(shop, path, step="shop").headers["Permissions-Policy"] == "camera=(self)"
    )
    others = (
        shop.client.get(path),
        press(shop, path),
        shop.client.get("/merchant/login"),
    )
    policies = {answer.headers["Permissions-Policy"] for answer in others}
    assert policies == {"camera=()"}


def test_each_wallet_shows_the_way_through_its_menus_without_script(shop):
    page = Page(press(shop, path_of(shop), step="shop").text)
    radios = {
        tag["value"]: tag["aria-describedby"]
        for name, tag in page.tags
        if name == "input" and tag.get("name") == "wallet"
    }
    others = ["other", "none"]
    assert list(radios) == [wallet.name for wallet in LISTED_WALLETS] + others
    for wallet in LISTED_WALLETS:
        assert " › ".join(wallet.menu) in page.texts[radios[wallet.name]]
    assert "File › Save backup" in page.texts[radios["Electrum"]]


def upload(shop, path, content, **more):
    """The wallet's form with its file, as a browser sends it."""
    data = {**TYPED, "key": "", **more, "file": (BytesIO(content), "wallet.json")}
    return shop.client.post(
        path, data=data, headers=FROM_THIS_SITE, content_type="multipart/form-data"
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_chosen_file_takes_the_place_of_the_text(shop, encoding):
    path = path_of(shop)
    content = json.dumps({"wallet_type": "standard", "keystore": {"xpub": KEY}})
    shown = upload(shop, path, content.encode(encoding), key="what was pasted before")
    page = Page(shown.text)
    assert page.texts["reading"] == "one key, P2PKH, from Electrum's file"
    made = press(shop, path, **page.values | {"same": "1"})
    assert made.status_code == 303
    shop.merchant_id = shop.service.db.rows(merchants.ALL)[0].id
    assert shop.invoice()["deposit_address"] == addresses_of(shown.text)[0]


def test_a_file_that_is_refused_is_not_shown_and_the_text_stays(shop):
    path = path_of(shop)
    for content in (b"SQLite format 3\0\xff\xfe", f"{SEED}".encode(), b""):
        page = Page(upload(shop, path, content, key="pasted words").text)
        assert page.texts["key"] == "pasted words"
        assert "sausage" not in page.source and "SQLite" not in page.source
        assert page.texts["problem"].strip()
    wrong_number = Page(upload(shop, path, KEY.encode(), skip="x").text)
    assert wrong_number.texts["skip-problem"] and wrong_number.texts["key"] == KEY
    too_large = upload(shop, path, b"x" * 1_000_000)
    assert too_large.status_code == 413
    assert "too large for a wallet's export" in html.unescape(too_large.text)


def test_the_kind_of_addresses_is_asked_for_only_where_the_text_leaves_it_open(shop):
    path = path_of(shop)
    asked = press(shop, path, script="")
    page = Page(asked.text)
    offered = [
        tag["value"]
        for name, tag in page.tags
        if name == "button" and tag.get("name") == "script"
    ]
    assert offered == ["p2wpkh", "p2sh-p2wpkh", "p2pkh", "p2tr"]
    of_kinds = addresses_of(asked.text)
    for script, address in zip(offered, of_kinds, strict=True):
        compared = press(shop, path, **page.values | {"script": script})
        assert addresses_of(compared.text)[0] == address
        assert "is assumed" not in compared.text
    for text in (descriptor_of("p2wpkh"), f"pkh({KEY}/0/*)"):
        assert len(addresses_of(press(shop, path, key=text, script="").text)) == 3


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
    addresses = addresses_of(shown.text)
    assert radios == ["bip49", "bip84"] and len(addresses) == 2
    kept = Page(shown.text).values
    assert kept["key"] == text and kept["name"] == TYPED["name"]
    compared = press(shop, path, **{**kept, "choose": "bip84"})
    assert addresses[1] == addresses_of(compared.text)[0]
    page = Page(compared.text)
    assert page.texts["reading"] == "one key, P2WPKH, from Coldcard's file"
    assert page.values["choose"] == "bip84"
    made = press(shop, path, **page.values | {"same": "1"})
    assert made.status_code == 303
    (row,) = shop.service.db.rows(merchants.ALL)
    shop.merchant_id = row.id
    assert shop.invoice()["deposit_address"] == addresses[1]


def test_a_long_file_is_read_and_what_was_left_out_is_said(shop):
    note = "a transaction, " * 10_000
    text = json.dumps(
        {"note": note, "wallet_type": "standard", "keystore": {"xpub": KEY}}
    )
    assert len(text) > 2 * shop.service.settings.max_body_bytes
    shown = press(shop, path_of(shop), key=f"Here is it: {text}")
    page = Page(shown.text)
    assert page.texts["reading"] == "one key, P2PKH, from Electrum's file"
    assert page.texts["left-out"] == "the words beside the file"


def test_the_kind_that_was_chosen_is_used_for_a_key_that_does_not_say_it(shop):
    shown = press(shop, path_of(shop), script="p2tr")
    assert Page(shown.text).texts["reading"] == "one key, P2TR, from a key"
    assert all(one.startswith("bcrt1p") for one in addresses_of(shown.text))


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


def cookie_of(answer):
    """The session's cookie, without the second in which it expires."""
    return answer.headers["Set-Cookie"].partition(";")[0]


def test_a_second_press_of_the_last_button_lands_where_the_first_one_did(shop):
    path = path_of(shop)
    values = Page(press(shop, path).text).values | {"same": "1"}
    # The browser drops the first answer, so the second press has no cookie of it.
    first, second = (press(shop, path, **values) for _ in "12")
    assert first.headers["Location"] == second.headers["Location"]
    assert cookie_of(first) == cookie_of(second)
    assert len(shop.service.db.rows(merchants.ALL)) == 1


def test_two_presses_at_once_make_one_shop_and_both_land_in_it(shop):
    path = path_of(shop)
    values = Page(press(shop, path).text).values | {"same": "1"}
    answers = at_once(8, lambda _: press(shop, path, **values))
    assert [answer.status_code for answer in answers] == [303] * 8
    assert len({cookie_of(answer) for answer in answers}) == 1
    assert len(shop.service.db.rows(merchants.ALL)) == 1


def test_only_the_form_that_made_the_shop_lands_in_it_and_not_after_a_log_out(shop):
    path = path_of(shop)
    values = Page(press(shop, path).text).values | {"same": "1"}
    other = Page(press(shop, path).text).values | {"same": "1"}
    made = press(shop, path, **values)
    assert press(shop, path, **other).status_code == 404
    assert press(shop, path, **values | {"press": ""}).status_code == 404
    wrong = path.rpartition("/")[0] + "/wrong"
    assert press(shop, wrong, **values).status_code == 404
    end_all(shop.service.db, shop.service.db.rows(merchants.ALL)[0].id)
    assert made.status_code == 303
    assert press(shop, path, **values).status_code == 404


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


@pytest.mark.slow
def test_the_pages_are_on_under_run_unless_the_setting_says_off(shop, tmp_path):
    for said, status in (({}, 401), ({"BLOCKTILL_MERCHANT_PAGES": "off"}, 404)):
        shop.environ.pop("BLOCKTILL_MERCHANT_PAGES", None)
        with Live(shop, tmp_path, words=("run",), **said) as live:
            assert (
                requests.get(f"{live.url}/merchant", timeout=60).status_code == status
            )
            assert ("To begin, open " in live.log()) == (status == 401)


@pytest.mark.slow
def test_plugins_are_answered_under_run_unless_the_setting_says_off(shop, tmp_path):
    for environ, status in (({}, 401), ({"BLOCKTILL_GREENFIELD": "off"}, 404)):
        with Live(shop, tmp_path, words=("run",), **environ) as live:
            url = f"{live.url}/api-keys/authorize"
            assert requests.get(url, timeout=60).status_code == status


@pytest.mark.slow
def test_a_token_that_was_set_is_in_no_log_and_opens_the_page(shop, tmp_path):
    token = "hunter2-0123456789-hunter2"
    with Live(shop, tmp_path, words=("run",), BLOCKTILL_SETUP_TOKEN=token) as live:
        assert (
            requests.get(f"{live.url}/merchant/start/{token}", timeout=60).status_code
            == 200
        )
        assert "/merchant/start/*** (***: BLOCKTILL_SETUP_TOKEN)" in live.log()
        assert token not in live.log()
