"""`blocktill merchant add`: keys by standard input, and seed words that are never repeated."""

import json
from io import StringIO

import pytest

from btcpay.bitcoin.descriptor_checksum import checksum
from btcpay.cli.merchant.account_text import key_of, show_reading
from btcpay.merchants.account import derive
from btcpay.merchants.secret import are_seed_words
from btcpay.merchants.wallet_text.read import read_wallet_text
from btcpay.values.errors import CommandError
from btcpay.values.networks import NETWORKS
from storage.queries import blocks
from tests.support.accounts import descriptor_of
from tests.support.builders import clean_environ, new_xpub
from tests.support.fake_esplora import Terminal
from tests.support.forge import forge

# The first of BIP39's test vectors with 12 and with 24 words.
TWELVE = "legal winner thank year wave sausage worth useful legal winner thank yellow"
TWENTY_FOUR = (
    "letter advice cage absurd amount doctor acoustic avoid letter advice cage absurd amount"
    " doctor acoustic avoid letter advice cage absurd amount doctor acoustic bless"
)
JAPANESE = "\u3000".join(["\u3042\u3044\u3053\u304f\u3057\u3093"] * 12)


def add(shop, *words, typed="", status=0, skip="0"):
    """All that `blocktill merchant add` said, with this on its standard input.

    The shop's explorer answers nothing, so a number is given, unless `skip` is None.
    """
    if skip is not None:
        words += ("--skip", skip)
    environ = clean_environ(**shop.environ)
    ended = forge().run(environ, ["merchant", "add", *words], typed)
    assert ended.status == status, ended.errors
    return ended.output + ended.errors


def names(shop):
    return [
        name for (name,) in shop.sql("SELECT name FROM merchant ORDER BY id").fetchall()
    ]


def next_index(shop, name):
    ((index,),) = shop.sql(
        f"SELECT next_index FROM merchant WHERE name = '{name}'"  # noqa: S608
    ).fetchall()
    return index


def test_the_key_is_the_first_line_of_standard_input_and_the_next_answers(shop):
    said = add(shop, "second", "--xpub", "-", typed=f"  {new_xpub()}  \ny\n")
    assert "bcrt1q" in said and "added second" in said
    said = add(shop, "third", "--xpub", "-", typed=f"{new_xpub()}\nn\n", status=1)
    assert said.endswith("blocktill: nothing was added\n")
    said = add(shop, "third", "--xpub", "-", typed=new_xpub(), status=1)
    assert said.endswith("Aborted!\n")
    add(shop, "third", "--xpub", "-", "--yes", typed=new_xpub())
    assert names(shop) == ["shop", "second", "third"]


def test_all_of_standard_input_is_read_and_how_it_was_read_is_said(shop):
    keys = [new_xpub(), new_xpub()]
    lines = [f"73C5DA0{place}: {key}" for place, key in enumerate(keys)]
    text = "\n".join(["Name: Vault", "Policy: 2 of 2", "Format: P2WSH", "", *lines])
    said = add(shop, "second", "--descriptor", "-", typed=f"{text}\n\ny\n")
    assert "Read as 2 of 2, P2WSH, from a wallet's file." in said
    assert "Note: There is no checksum" in said and "added second" in said


def several():
    """A wallet's file with two accounts, and their first addresses."""
    keys = {"bip49": new_xpub(), "bip84": new_xpub()}
    forms = {"bip49": "sh(wpkh({}/0/*))", "bip84": "wpkh({}/0/*)"}
    tree = {name: {"desc": forms[name].format(key)} for name, key in keys.items()}
    network = NETWORKS["regtest"]
    return json.dumps(tree), {
        name: derive(node["desc"], 0, network) for name, node in tree.items()
    }


def test_of_several_accounts_one_is_asked_for_by_name(shop):
    text, addresses = several()
    said = add(shop, "second", "--xpub", "-", "--yes", typed=text, status=1)
    assert "say --choose with one of bip49, bip84" in said
    assert all(address in said for address in addresses.values())
    assert names(shop) == ["shop"]
    add(shop, "second", "--xpub", "-", "--choose", "bip50", typed=text, status=1)
    words = ("--xpub", text, "--choose", "BIP84", "--yes")
    said = add(shop, "second", *words)
    assert addresses["bip84"] in said and addresses["bip49"] not in said


def test_the_chain_is_begun_with_the_first_merchant(lied_to):
    till = lied_to(has_begun=False)
    add(till.shop, "second", "--xpub", new_xpub(), "--yes", skip=None)
    assert blocks.tip_height(till.shop.service.db) == till.sandbox.chain.ledger.height


def test_a_merchant_is_made_where_no_source_answers(shop):
    said = add(shop, "second", "--xpub", new_xpub(), "--yes")
    assert (
        "the next check begins to follow the chain" in said and "added second" in said
    )


def test_without_an_answer_of_the_chain_no_shop_begins_at_0_unasked(shop):
    key = new_xpub()
    said = add(shop, "second", "--xpub", key, "--yes", status=1, skip=None)
    assert "It is not known whether this account was used before: " in said
    assert "blocktill: nothing was added. Try again later, or say --skip N" in said
    assert "bcrt1q" not in said and names(shop) == ["shop"]
    said = add(shop, "second", "--xpub", "-", typed=f"{key}\n7\ny\n", skip=None)
    assert "The shop begins at 7, as --skip says." in said
    assert next_index(shop, "second") == 7


def test_what_could_not_be_looked_at_is_not_called_unused(shop):
    said = add(shop, "second", "--xpub", new_xpub(), "--yes", skip="0")
    assert "It is not known whether this account was used before: " in said
    assert "The shop begins at 0, as --skip says." in said
    assert "No used address was seen" not in said


def test_nodes_alone_cannot_be_asked_so_a_number_is_named(shop):
    shop.environ |= {
        "BLOCKTILL_EXPLORERS": "none",
        "BLOCKTILL_PEERS": "127.0.0.1:9",
    }
    words = ("second", "--xpub", new_xpub(), "--yes")
    assert "no explorer is set" in add(shop, *words, status=1, skip=None)
    assert "with a gap limit of 301 or more" in add(shop, *words, skip="300")
    assert next_index(shop, "second") == 300


# Gaps of up to twenty, as an account of BTCPay Server's has them.
USED = [*range(60), 79, 80, 99, *range(119, 160), 179, 199, 213]


@pytest.mark.parametrize("form", ["p2wpkh", "p2wsh"])
def test_a_shop_begins_behind_the_used_addresses_of_its_account(till, form):
    descriptor = descriptor_of(form)
    for index in USED:
        address = derive(descriptor, index, till.settings.network)
        till.sandbox.wallet.pay(address, 10_000, till.now)
        if index % 25 == 0:
            till.mine()
    till.mine()
    later = derive(descriptor, 216, till.settings.network)
    till.sandbox.wallet.pay(later, 10_000, till.now)  # waits in the mempool
    said = add(till.shop, "used", "--descriptor", descriptor, "--yes", skip=None)
    assert "300 addresses looked at, used up to number 216" in said
    assert "This account was used up to number 216: the shop begins at 217." in said
    assert "with a gap limit of 20 or more" in said
    first = derive(descriptor, 217, till.settings.network)
    assert "numbers 217 to 219 of the account (from 0)" in said and first in said
    assert next_index(till.shop, "used") == 217
    (_, row) = Terminal(till).json("merchant", "list")
    assert (row["gap_limit"], row["highest_paid"]) == (1, None)


def test_a_number_that_is_too_low_is_moved_behind_the_used_addresses(till):
    descriptor = descriptor_of("p2wpkh")
    address = derive(descriptor, 120, till.settings.network)
    till.sandbox.wallet.pay(address, 10_000, till.now)
    words = ("--descriptor", descriptor, "--yes")
    said = add(till.shop, "used", *words, skip="100")
    assert "was used up to number 120: the shop begins at 121." in said
    assert next_index(till.shop, "used") == 121


def test_nothing_on_standard_input_is_no_key(monkeypatch):
    monkeypatch.setattr("sys.stdin", StringIO())
    with pytest.raises(CommandError, match="no key was given"):
        key_of("-", [])


def test_a_key_that_another_merchant_has_is_refused_before_addresses_are_compared(shop):
    key = new_xpub()
    add(shop, "second", "--xpub", key, "--yes")
    said = add(shop, "third", "--xpub", key, status=1)
    assert (
        said.startswith("blocktill: merchant second has this key already: ")
        and "bcrt" not in said
    )


def test_of_two_keys_none_is_taken_and_none_is_repeated(shop):
    one = new_xpub()
    other = new_xpub()
    for words in (
        ["--descriptor", f"wpkh({one}/0/*)", "--xpub", other],
        ["--xpub", one] * 2,
    ):
        said = add(shop, "second", *words, "--yes", status=2)
        assert "give one key" in said and one not in said and other not in said
    assert names(shop) == ["shop"]


def test_a_descriptor_is_taken_and_who_signs_is_shown(shop):
    first, second, third = (new_xpub() for _ in range(3))
    keys = f"[73C5DA0A/48h/1h/0h/2h]{first}/<0;1>/*,[deadbeef/48'/1'/0'/2']{second}/0/*,{third}/0/*"
    script = f"wsh(sortedmulti(2,{keys}))"
    said = add(
        shop,
        "second",
        "--descriptor",
        "-",
        "--yes",
        typed=f"{script}#{checksum(script)}\n",
    )
    signers = {
        first: " 73c5da0a/48'/1'/0'/2'",
        second: " deadbeef/48'/1'/0'/2'",
        third: "",
    }
    listed = "".join(
        f"  tpub...{key[-8:]}{origin}\n" for key, origin in signers.items()
    )
    assert f"To spend, 2 of these 3 sign:\n{listed}" in said
    assert said.count("  bcrt1q") == 3 and third not in said
    ((stored,),) = shop.sql(
        "SELECT descriptor FROM merchant WHERE name = 'second'"
    ).fetchall()
    kept = f"[73c5da0a/48'/1'/0'/2']{first}/0/*,{keys.partition(',')[2]}"
    assert stored == f"wsh(sortedmulti(2,{kept}))"
    add(shop, "taproot", "--descriptor", f"tr({third}/0/*)", "--yes")
    said = add(shop, "again", "--xpub", third, status=1)
    assert "merchant taproot has this key already" in said


def test_a_range_for_change_is_shown_as_one(capsys):
    for branch, is_for_change in (("0", False), ("<1;0>", True), ("1", True)):
        read = read_wallet_text(f"wpkh({new_xpub()}/{branch}/*)", NETWORKS["regtest"])
        show_reading(read, read.choose(None))
        assert (
            "the wallet's own change would pay" in capsys.readouterr().err
        ) == is_for_change


SEEDS = {
    "twelve in quotes": (["--xpub", TWELVE], ""),
    "twelve without quotes": (["--xpub", *TWELVE.split()], ""),
    "by standard input": (["--xpub", "-"], f"{TWELVE}\n"),
}


@pytest.mark.parametrize("name", SEEDS)
def test_seed_words_are_not_repeated_and_what_has_happened_is_named(name, shop):
    words, typed = SEEDS[name]
    said = add(shop, "second", *words, "--yes", typed=typed, status=1)
    assert "seed words" in said and "has now been shown them" in said
    assert "move all money there" in said and "all of it was copied" not in said
    assert not any(
        word in said for word in ("legal", "winner", "sausage", "acoustic", "bless")
    )
    assert names(shop) == ["shop"]


def test_eleven_words_are_not_repeated_either(shop):
    said = add(shop, "second", "--xpub", *TWELVE.split()[:11], "--yes", status=1)
    assert "seed words" in said and "winner" not in said


LOOK = {
    TWELVE: True,
    TWENTY_FOUR: True,
    TWELVE.upper(): True,
    JAPANESE: True,  # with its own blanks
    TWELVE.replace(" ", ",\n"): True,
    " ".join(f"{n}. {word}" for n, word in enumerate(TWELVE.split(), 1)): True,
    " ".join(TWELVE.split()[:11]): False,
    f"{TWENTY_FOUR} more": False,
    "": False,
    "xpub" + "9Ab" * 36: False,  # a key that was not all of it was copied
    " ".join(["xpub6CUGRUo"] * 12): False,  # twelve words with digits in them
}


@pytest.mark.parametrize("text", LOOK)
def test_what_looks_like_seed_words(text):
    assert are_seed_words(text) == LOOK[text]
    with pytest.raises(CommandError, match="seed words" if LOOK[text] else None):
        read_wallet_text(text, NETWORKS["regtest"])
