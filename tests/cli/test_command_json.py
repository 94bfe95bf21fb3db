"""`--json`: what every command answers to programs; and to a terminal that is not of UTF-8."""

import json
import re

import pytest

from btcpay import hooks
from btcpay.cli.main import cli
from tests.support.builders import Clock, new_xpub
from tests.support.commands import commands
from tests.support.fake_esplora import Terminal, open_till
from tests.support.merchant_browser import ON

Words = list[str]
IN_PLACE = ["restore", "--in-place", "--yes"]


# `listen` answers until it is stopped: tests/notify/test_listen.py reads its lines.
# A part's own commands are tried in its room.
PART_RESOURCES = {name for part in hooks.of(hooks.Commands) for name in part.commands}
NAMES = {
    name for name, one in commands(cli) if any(p.name == "as_json" for p in one.params)
}
ANSWERING = {name for name in NAMES if name.split()[0] not in PART_RESOURCES} - {
    "listen"
}


@pytest.fixture(scope="module")
def till(tmp_path_factory, ticker):
    """A shop with something of everything: a link with bounds, a payment, a key, a brand."""
    with open_till(tmp_path_factory.mktemp("shop"), ticker, Clock(), **ON) as till:
        till.shop.post("/payment-links", {"amount_usd": 12.5})
        till.shop.post("/payment-links", {"min_amount_usd": 1, "max_amount_usd": 9.99})
        till.confirm(till.shop.invoice(amount_usd=25, description="1000"))
        yield till


SHOWS_TEXTS = ("merchant list", "invoice list", "invoice show", "link list")
# None of Latin-1: Japanese, the sign of the euro, an emoji beyond 16 bits.
BEYOND_LATIN_1 = "\u73c8\u7432 \u20ac5 \U0001f600"


@pytest.fixture
def foreign_till(tmp_path_factory, ticker):
    """As `till`, with texts that are not of Latin-1 wherever somebody may write one."""
    with open_till(tmp_path_factory.mktemp("foreign"), ticker, Clock(), **ON) as till:
        till.shop.add_merchant(BEYOND_LATIN_1)
        till.shop.post("/payment-links", {"amount_usd": 12.5, "title": BEYOND_LATIN_1})
        till.confirm(till.shop.invoice(amount_usd=25, description=BEYOND_LATIN_1))
        yield till


def trips(till, folder):
    """Each answering command with the words that make it answer."""
    invoice_id = till.shop.get("/invoices").json["data"][0]["id"]
    proof = folder / "proof.json"
    proof.write_text(Terminal(till).run("invoice", "show", invoice_id, "--proof")[0])
    key_id = till.shop.sql("SELECT id FROM api_key").fetchone()[0]
    words: dict[str, Words] = {name: name.split() for name in ANSWERING}
    words["merchant add"] += ["second", "--yes", "--xpub", new_xpub()]
    of_shop = "brand currency login mail receipt return sessions timezone"
    for name in (
        *(f"merchant {word}" for word in of_shop.split()),
        "wallet export",
        "wallet gap",
    ):
        words[name] += ["shop"]
    words["key issue"] += ["shop", "--scope", "read"]
    words["key rotate"] += [key_id]
    words["invoice create"] += ["shop", "--usd", "12.5"]
    words["link create"] += ["shop", "--amount", "12.5"]
    words["invoice show"] += [invoice_id]
    words["verify-proof"] += [str(proof)]
    words["backup"] += [str(folder / "copy.db")]
    words["restore"] = IN_PLACE
    url = ("http://127.0.0.1:9/",)
    command = ("--exec", "true")
    added = [
        Terminal(till).json("webhook", "add", "shop", *to)["id"]
        for to in (url, command)
    ]
    words["webhook add"] += ["shop", *url]
    words["webhook rotate"] += added[:1]
    words["webhook deliveries"] += added[1:]
    words["webhook test"] += added[1:]
    return words


def texts_that_are_numbers(value, path=""):
    if isinstance(value, dict):
        for name, item in value.items():
            yield from texts_that_are_numbers(item, f"{path}/{name}")
    elif isinstance(value, list):
        for item in value:
            yield from texts_that_are_numbers(item, path)
    elif isinstance(value, str) and re.fullmatch(
        r"-?\d+(\.\d+)?([eE][+-]?\d+)?", value
    ):
        yield f"{path}: {value}"


# Texts that happen to be digits: a merchant's own words, and signs of a secret.
OWN_WORDS = ("/description", "/invoice/description", "/last_four")
LISTS = ("merchant list", "key list", "link list", "invoice list")


@pytest.mark.slow
def test_every_number_of_every_answer_is_a_number(till, tmp_path):
    found = {}
    for name, words in sorted(trips(till, tmp_path).items()):
        answer = Terminal(till).json(*words)
        texts = texts_that_are_numbers(answer)
        found[name] = [text for text in texts if not text.startswith(OWN_WORDS)]
        for row in answer if name in LISTS else ():
            assert row["created_at"].endswith("Z") and "secret" not in row, name
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_dollars_come_back_as_they_went_in(till):
    links = Terminal(till).run("link", "list", "--json")[0]
    assert '"amount": 12.5' in links
    (row,) = Terminal(till).json("export", "payments")
    assert (row["invoice_usd_quote"], row["amount_btc"]) == (
        25,
        row["amount_sats"] / 10**8,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        pytest.param("latin-1", r"\u73c8\u7432", id="Latin-1, as of LC_ALL=de_DE"),
        pytest.param("ascii", BEYOND_LATIN_1, id="ASCII, which click takes for UTF-8"),
    ],
)
def test_every_command_answers_where_output_cannot_hold_its_texts(
    foreign_till, tmp_path, encoding, shown
):
    """JSON is UTF-8 whatever the terminal is (RFC 8259); what else cannot be shown is escaped."""
    terminal = Terminal(foreign_till)
    trips_of = trips(foreign_till, tmp_path)
    trips_of["merchant list"] = ["merchant", "list"]
    answers = {}
    for name, words in sorted(trips_of.items()):
        as_json, _ = terminal.run(*words, "--json", PYTHONIOENCODING=encoding)
        answers[name] = json.loads(as_json)
    assert answers["merchant list"][1]["name"] == BEYOND_LATIN_1
    descriptions = [row["description"] for row in answers["invoice list"]]
    assert BEYOND_LATIN_1 in descriptions
    for name in SHOWS_TEXTS:
        output, errors = terminal.run(*trips_of[name], PYTHONIOENCODING=encoding)
        assert shown in output, name
        assert "Traceback" not in errors, name
