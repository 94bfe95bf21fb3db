"""`blocktill doctor`: a planted fault for each finding."""

import re
import shlex
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from email.utils import formatdate
from pathlib import Path

import pytest

from btcpay.health.doctor import prices
from btcpay.health.doctor.database import FOLDER_REMEDY, free_space, modes
from btcpay.health.doctor.explorers import clock as clock_findings
from btcpay.health.doctor.probe import Probe, judge_tip
from btcpay.health.doctor.records import gaps, totals
from btcpay.health.doctor.settings import findings
from btcpay.health.doctor.shop import Shop
from btcpay.merchants.account import derive
from btcpay.settings import settings
from btcpay.settings.secrets import mask
from btcpay.settings.ticker_settings import price_sources
from btcpay.values.networks import NETWORKS
from storage import versions
from storage.database import Database, open_database
from storage.queries import merchants, meta
from storage.queries.totals import balances
from tests.support.builders import Clock, TickerServer
from tests.support.fake_esplora import FakeEsplora, Terminal, Till, say
from tests.support.findings import PLENTY, found


def colours(till, **environ):
    return {name: finding.colour for name, finding in found(till, **environ).items()}


def explorer_of(till):
    return till.settings.explorers[0]


def test_a_healthy_shop_is_green_and_the_command_says_so(till):
    invoice = till.shop.invoice()
    till.confirm(invoice)
    everything = found(till)
    assert {"disk", "file modes"} <= set(everything)
    assert (
        everything["database"].sentence
        == f"SQLite, version {versions.VERSION}, regtest"
    )
    assert {finding.colour for finding in everything.values()} == {"green"}
    assert {finding.remedy for finding in everything.values()} == {""}
    output, _ = Terminal(till).run("doctor", "--integrity")
    assert {line.split()[0] for line in output.splitlines()} <= {"green", "yellow"}
    assert f"{invoice['amount_sats']} satoshis confirmed" in output


def test_what_is_found_is_shown_while_an_explorer_is_silent(till):
    is_shown = threading.Event()
    shown_first = []

    def silent(_):
        shown_first.append(is_shown.wait(15))
        return say("", 500)

    with FakeEsplora() as explorer:
        explorer.instead = silent
        with Terminal(till).start(
            "doctor", BLOCKTILL_EXPLORERS=explorer.root
        ) as doctor:
            assert doctor.stdout.readline().startswith("green  database")
            is_shown.set()
            doctor.communicate(60)
    assert shown_first and all(shown_first)


def test_every_finding_that_is_not_green_has_a_remedy(till):
    till.sandbox.switches.explorer = "down"
    till.clock.move(hours=3)
    for finding in found(till, free_bytes=0).values():
        assert bool(finding.remedy) == (finding.colour != "green"), finding


def test_the_calls_are_bounded_and_counted_in_the_quota(lied_to, clock):
    till = lied_to(has_begun=False)
    found(till)
    assert len(till.liar.asked) == 7 + 1 + 1 + 10
    assert till.shop.sql("SELECT sum(calls) FROM explorer_use").fetchone() == (19,)
    spent = colours(till, BLOCKTILL_EXPLORER_CALLS_PER_HOUR="19")
    assert spent["explorer 127.0.0.1"] == "yellow"  # its hour is over, it is not ill
    assert len(till.liar.asked) == 19


def damaged(path, till):
    for _ in range(20):
        till.shop.invoice()
    Terminal(till).run("backup", str(path))
    raw = bytearray(path.read_bytes())
    raw[4096 * 2 : 4096 * 20] = b"\xff" * 4096 * 18
    path.write_bytes(raw)


# A thing in the database's place, and the sentence about it.
FILES: dict[str, tuple[Callable[[Path, Till], object], str, str]] = {
    "nothing": (
        lambda path, _: None,
        "there is no database at",
        "run `blocktill migrate`",
    ),
    "an empty file": (
        lambda path, _: path.touch(),
        "is empty",
        "run `blocktill migrate`",
    ),
    "no database": (
        lambda path, _: path.write_text("not one " * 999),
        "not a database",
        "backup",
    ),
    "a damaged database": (damaged, "cannot be used", "restore a backup"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_is_no_database_is_red_and_the_rest_is_still_looked_into(
    case, till, tmp_path
):
    make, sentence, remedy = FILES[case]
    path = tmp_path / "other.db"
    make(path, till)
    everything = found(till, BLOCKTILL_DATABASE_URL=f"sqlite:///{path}")
    finding = everything["database"]
    assert (
        finding.colour == "red"
        and sentence in finding.sentence
        and remedy in finding.remedy
    )
    assert (
        everything["explorer 127.0.0.1"].colour == everything["price"].colour == "green"
    )
    assert "totals of shop" not in everything
    assert ("file modes" in everything) == path.is_file()
    assert path.exists() == (case != "nothing")


@pytest.mark.parametrize(
    ("change", "sentence", "remedy"),
    [
        ("DELETE FROM schema_step", "not a database of this program", "run `blocktill migrate`"),
        ("UPDATE schema_step SET number = 9999", "newer than this", "newer program"),
        (
            "UPDATE meta SET value = 'signet' WHERE name = 'network'",
            "belongs to signet",
            "another database, or BLOCKTILL_NETWORK to signet",
        ),
    ],
    ids=["of no version", "a newer one", "of another network"],
)  # fmt: skip
def test_another_programs_or_networks_database_is_red(change, sentence, remedy, till):
    till.shop.sql(change)
    finding = found(till)["database"]
    assert (
        finding.colour == "red"
        and sentence in finding.sentence
        and remedy in finding.remedy
    )
    assert Terminal(till).json("doctor", status=1)[0]["name"] == "database"


def of_file(path, free_bytes=PLENTY):
    """A shop on a file of SQLite's; the file alone is there."""
    read = settings.read({"BLOCKTILL_DATABASE_URL": f"sqlite:///{path}"})
    return Shop(read, {}, Clock(), lambda _: free_bytes)


FOLDER = FOLDER_REMEDY.format("{folder}")
FILE = "chmod 600 '{folder}/shop.db'"
LOG = "chmod 600 '{folder}/shop.db-wal'"
MODES = {
    "all are its owner's": (0o700, 0o600, 0o600, ""),
    "others may pass through the folder": (0o711, 0o600, 0o600, ""),
    "others may list the folder": (0o755, 0o600, 0o600, FOLDER),
    "others may read the file": (0o700, 0o604, 0o600, FILE),
    "its group may": (0o700, 0o640, 0o600, FILE),
    "others may read the log": (0o700, 0o600, 0o644, LOG),
    "others may list the folder and read the file": (
        0o1777,
        0o644,
        0o600,
        f"{FOLDER}; {FILE}",
    ),
}


@pytest.mark.parametrize("case", MODES)
def test_what_others_may_read_is_red_and_the_remedy_harms_nobody_else(case, tmp_path):
    """It names files that are the database's, and a folder only if it is its alone."""
    *modes_of, remedy = MODES[case]
    folder = tmp_path / "a shop"
    folder.mkdir()
    places = [folder, *(folder / name for name in ("shop.db", "shop.db-wal"))]
    for name in ("shop.db", "shop.db-wal", "shop.db.check.lock", ".shop.db.x.part"):
        (folder / name).touch()
    for place, mode in zip(places, modes_of, strict=True):
        place.chmod(mode)
    (finding,) = modes(of_file(folder / "shop.db"))
    assert finding.remedy == remedy.format(folder=folder)
    assert finding.colour == ("red" if remedy else "green")


@pytest.mark.parametrize(
    ("free_bytes", "colour"),
    [
        (10**9, "green"),
        (10**9 - 1, "yellow"),
        (10**8, "yellow"),
        (10**8 - 1, "red"),
        (0, "red"),
    ],
)
def test_a_full_disk_is_red_before_it_is_full(free_bytes, colour, tmp_path):
    (finding,) = free_space(of_file(tmp_path / "shop.db", free_bytes))
    assert finding.colour == colour


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE balance SET total_sats = total_sats + 1",
        "UPDATE balance SET total_sats = total_sats + 1, confirmed_sats = confirmed_sats + 1",
        "DELETE FROM balance",
    ],
    ids=["the whole", "what is confirmed", "there is none"],
)
def test_a_total_that_is_not_the_sum_of_its_rows_is_red(till, change):
    till.confirm(till.shop.invoice())
    till.shop.sql(change)
    finding = found(till)["totals of shop"]
    assert finding.colour == "red"
    assert "add up to" in finding.sentence and "restore" in finding.remedy


def test_without_integrity_the_doctor_reads_no_more_of_a_large_database_than_of_a_small_one(
    till,
):
    """Neither pages nor totals: both take as long as there are payments."""
    till.shop.sql("UPDATE balance SET total_sats = total_sats + 1")
    names = [finding["name"] for finding in Terminal(till).json("doctor")]
    assert "database" in names and "totals of shop" not in names


def test_a_check_is_missed_before_the_first_and_when_none_was_complete_for_long(till):
    before = found(till)["check"]
    assert before.colour == "yellow" and "every minute" in before.remedy
    till.check()
    till.clock.move(minutes=16)
    till.shop.invoice()
    till.sandbox.switches.explorer = "down"
    till.check()  # it is not complete
    after = found(till)["check"]
    assert after.colour == "red" and "16 minutes ago" in after.sentence
    assert colours(till, BLOCKTILL_CHECK_MAX_AGE_MIN="60")["check"] == "green"


@pytest.mark.parametrize(
    ("said", "given_out", "colour"),
    [
        pytest.param(
            None, 14, "green", id="three quarters of the twenty that wallets come with"
        ),
        pytest.param(None, 15, "yellow", id="more, though the wallet still sees them"),
        pytest.param(
            200, 149, "green", id="three quarters of what the wallet is said to have"
        ),
        pytest.param(200, 150, "yellow", id="more than that"),
        pytest.param(200, 200, "yellow", id="beyond it, too"),
    ],
)
def test_the_gap_is_yellow_before_it_outgrows_what_the_wallet_is_said_to_have(
    said, given_out, colour, till
):
    if said:
        assert (
            f"taken to have {said}"
            in Terminal(till).run("wallet", "gap", "shop", str(said))[0]
        )
    till.shop.sql(f"UPDATE merchant SET next_index = {given_out}")  # noqa: S608
    shop = Shop(till.settings, {}, till.clock, lambda _: PLENTY)
    (finding,) = gaps(shop, till.shop.service.db)
    assert (
        finding.colour == colour and f"gap limit of {given_out + 1}" in finding.sentence
    )
    assert f"taken to have {said or 20}" in finding.sentence
    asks = f"`blocktill wallet gap shop {given_out + 101}`" in finding.remedy
    assert asks == (colour == "yellow")


def test_what_the_finding_asks_for_makes_it_green(till):
    till.shop.sql("UPDATE merchant SET next_index = 60, name = 'My shop'")
    asked = re.search(
        r"`blocktill (wallet gap .*?)`", found(till)["gap of My shop"].remedy
    )[1]
    Terminal(till).run(*shlex.split(asked))
    assert found(till)["gap of My shop"].colour == "green"


def test_an_explorer_of_another_network_is_red_beside_a_right_one(till):
    with FakeEsplora() as other:
        other.instead = lambda path: (
            say("00" * 32) if path == "/block-height/0" else None
        )
        roots = f"{explorer_of(till)} {other.root.replace('127.0.0.1', 'localhost')}"
        everything = found(till, BLOCKTILL_EXPLORERS=roots)
    assert everything["explorer 127.0.0.1"].colour == "green"
    assert everything["explorer localhost"].colour == "red"
    assert "another network" in everything["explorer localhost"].sentence
    assert "BLOCKTILL_NETWORK" in everything["explorer localhost"].remedy


def test_one_explorer_down_of_two_is_yellow_and_all_of_them_are_red(till):
    roots = f"http://localhost:9 {explorer_of(till)}"
    one = colours(till, BLOCKTILL_EXPLORERS=roots)
    assert one["explorer localhost"] == "yellow"
    assert one["explorer 127.0.0.1"] == one["addresses of shop"] == "green"
    till.sandbox.switches.explorer = "down"
    both = colours(till, BLOCKTILL_EXPLORERS=roots)
    assert both["explorer localhost"] == both["explorer 127.0.0.1"] == "red"
    assert both["addresses"] == "yellow"
    none = found(till, BLOCKTILL_EXPLORERS="http://localhost:9")
    assert none["clock"].remedy.startswith(
        "repair the explorers first"
    )  # not the clock


@pytest.mark.parametrize(
    ("path", "answer", "sentence"),
    [
        ("/raw$", say("not here", 404), "404"),
        ("/blocks$", say("not here", 404), "404"),
        ("/raw$", b"\x00" * 300, "cannot show its last block"),
        ("/header$", say("not here", 404), "404"),
        ("/blocks/[0-9]+$", say("not here", 404), "404"),
        ("/tip/hash$", say("not here", 404), "404"),
        ("/tip/height$", say("not here", 404), "404"),
    ],
    ids=[
        "no block",
        "no headers",
        "a false block",
        "no header of its tip",
        "no older headers",
        "no hash of its tip",
        "no height of its tip",
    ],
)
def test_an_explorer_that_does_not_show_blocks_is_red(path, answer, sentence, lied_to):
    till = lied_to()
    till.mine()
    till.liar.lies[path] = lambda _: answer
    finding = found(till)["explorer 127.0.0.1"]
    assert finding.colour == "red" and sentence in finding.sentence


@pytest.mark.parametrize("status", [400, 404, 405, 413, 500])
def test_an_explorer_that_shows_blocks_and_no_addresses_is_yellow(status, lied_to):
    till = lied_to()
    till.liar.lies["^/address/"] = lambda _: say("no addresses here", status)
    everything = found(till)
    finding = everything["explorer 127.0.0.1"]
    assert finding.colour == "yellow" and str(status) in finding.sentence
    assert "seen in blocks alone" in finding.sentence
    assert "BLOCKTILL_EXPLORERS" in finding.remedy
    assert "second explorer" not in everything


def test_an_address_of_each_kind_that_merchants_use_is_asked_about(lied_to):
    till = lied_to()
    account = till.shop.sql("SELECT descriptor FROM merchant").fetchone()[0]
    for name, function in (("twin", "wpkh("), ("other", "pkh(")):
        till.shop.sql(
            "INSERT INTO merchant (name, account_key, descriptor, next_index, created_ms)"  # noqa: S608
            f" SELECT '{name}', '{name}', replace(descriptor, 'wpkh(', '{function}'), 3, 1"
            " FROM merchant WHERE id = 1"
        )
    found(till)
    asked = [path for path in till.liar.asked if path.endswith("/txs/mempool")]
    network = till.settings.network
    other = account.replace("wpkh(", "pkh(")
    assert asked == [
        f"/address/{derive(account, 0, network)}/txs/mempool",
        f"/address/{derive(other, 3, network)}/txs/mempool",
    ]


def test_one_explorer_alone_that_has_the_first_block_is_yellow(lied_to):
    till = lied_to(honest_too=True)
    till.shop.invoice()
    till.check()
    honest = till.liar.honest.replace("127.0.0.1", "localhost")
    named = {"BLOCKTILL_EXPLORERS": f"{till.liar.root} {honest}"}
    assert "second explorer" not in found(till, **named)
    (first,) = till.shop.sql("SELECT MIN(height) FROM block").fetchone()
    till.liar.lies = {f"/block-height/{first}$": lambda _: "ab" * 32}
    everything = found(till, **named)
    assert everything["second explorer"].colour == "yellow"
    assert "only localhost shows our chain" in everything["second explorer"].sentence
    assert everything["explorer 127.0.0.1"].colour == "yellow"
    assert "begin-anew" in everything["explorer 127.0.0.1"].remedy


def test_a_tip_below_what_the_last_check_saw_is_red(till):
    till.shop.invoice()
    till.check()
    till.shop.sql(
        "UPDATE block SET height = height + 3 WHERE height = (SELECT MAX(height) FROM block)"
    )
    assert "3 blocks behind" in found(till)["explorer 127.0.0.1"].sentence
    assert colours(till)["explorer 127.0.0.1"] == "red"


def test_the_doctor_says_how_far_the_chain_is_read(lied_to):
    till = lied_to(has_begun=False)
    assert "no block is known" in found(till)["chain"].sentence
    till.shop.invoice()
    meta.put(
        till.shop.service.db, meta.Key.NOT_BEGUN, "a.example shows block 12 as number 5"
    )
    finding = found(till)["chain"]
    assert finding.colour == "red" and "a.example shows block 12 as" in finding.sentence
    till.check()
    assert "every block is read" in found(till)["chain"].sentence
    till.shop.sql(
        "UPDATE block SET read_ms = NULL WHERE height = (SELECT MAX(height) FROM block)"
    )
    finding = found(till)["chain"]
    assert (
        finding.colour == "yellow" and "1 block is still to be read" in finding.sentence
    )


TIPS = {
    "two hours happen": ("mainnet", 120, 0, ""),
    "more does not": (
        "mainnet",
        121,
        0,
        "has shown no block for 121 minutes; its last is 5",
    ),
    "on regtest blocks come when somebody mines": ("regtest", 10_000, 0, ""),
    "blocks come in bunches": ("mainnet", 0, 2, ""),
    "it is stuck behind another": ("mainnet", 0, 3, "is 3 blocks behind, at 5"),
}


@pytest.mark.parametrize("case", TIPS)
def test_a_tip_that_is_too_old_or_too_low_is_trouble(case, clock):
    network, minutes, behind, trouble = TIPS[case]
    probe = Probe("http://x", "x", height=5, tip_at=clock())
    judge_tip(
        probe, 5 + behind, NETWORKS[network], clock() + timedelta(minutes=minutes)
    )
    assert probe.trouble == trouble


@pytest.mark.parametrize(
    ("seconds", "colour"),
    [(0, "green"), (-60, "yellow"), (60, "yellow"), (180, "red"), (-180, "red")],
)
def test_a_clock_that_is_off(seconds, colour, lied_to):
    till = lied_to()
    till.liar.headers = lambda: {"Date": formatdate(usegmt=True)}
    till.clock.move(seconds=seconds)
    finding = found(till)["clock"]
    assert finding.colour == colour and ("NTP" in finding.remedy) == (colour != "green")


def test_one_explorer_with_the_same_time_is_enough_and_a_block_hours_ahead_too_much(
    till,
):
    same = [Probe("http://x", "x", ahead=timedelta(seconds=s)) for s in (-4000, 3)]
    ahead = [
        Probe("http://x", "x", tip_at=till.clock() + timedelta(hours=2, seconds=1))
    ]
    shop = Shop(till.settings, {}, till.clock, lambda _: PLENTY)
    for probes, colour in ((same, "green"), (ahead, "red")):
        assert [finding.colour for finding in clock_findings(shop, probes)] == [colour]


@pytest.mark.parametrize(("ahead", "colour"), [(0, "red"), (9, "red"), (10, "green")])
def test_a_used_address_ahead_of_the_counter_is_red(ahead, colour, till):
    till.shop.invoice()
    row = till.shop.service.db.get(merchants.BY_ID, id=till.shop.merchant_id)
    index = row.next_index + ahead
    address = derive(row.descriptor, index, till.settings.network)
    till.sandbox.wallet.pay(address, 10_000, till.now)
    finding = found(till)["addresses of shop"]
    assert finding.colour == colour
    if colour == "red":
        assert (
            f"number {index} is used" in finding.sentence
            and "--in-place" in finding.remedy
        )


def sources(*urls):
    return {"BLOCKTILL_PRICE_SOURCES": " ".join(f"{url}#/usd" for url in urls)}


def test_one_price_source_down_of_three_is_yellow(till, ticker):
    urls = (
        ticker.url,
        ticker.url.replace("127.0.0.1", "localhost"),
        "http://127.0.0.2:9/",
    )
    everything = colours(till, **sources(*urls))
    assert (
        everything["price source 127.0.0.2"] == "yellow"
        and everything["price"] == "green"
    )


def test_without_a_quorum_the_sources_in_trouble_are_red(till, ticker):
    everything = found(till, **sources(ticker.url, "http://localhost:9/"))
    assert (
        everything["price source localhost"].colour
        == everything["price"].colour
        == "red"
    )
    assert everything["price source 127.0.0.1"].colour == "green"
    fewer = "no price: 2 of 2 sources must agree within 5 %, and fewer do"
    assert everything["price"].sentence == fewer
    for urls, none in (
        (1, "none of 1 source answers"),
        (2, "none of 2 sources answers"),
    ):
        silent = sources(*["http://localhost:9/", "http://127.0.0.2:9/"][:urls])
        price = found(till, **silent)["price"]
        assert (
            price.sentence == f"no price: {none}"
            and "this machine's network" in price.remedy
        )


def test_fewer_than_three_price_sources_are_yellow_where_money_is_real(till, ticker):
    three = price_sources(
        " ".join(f"{ticker.url}?{number}#/usd" for number in range(3))
    )
    for network, count, colour in (
        ("signet", 2, "yellow"),
        ("signet", 3, "green"),
        ("regtest", 2, "green"),
    ):
        own = {
            "network": NETWORKS[network],
            "price_sources": three[:count],
            "price_quorum": 2,
        }
        shop = Shop(replace(till.settings, **own), {}, till.clock, lambda _: 0)
        *_, price = prices.findings(shop)
        assert (price.name, price.colour) == ("price", colour)
        assert ("three or more" in price.remedy) == (colour == "yellow")


@pytest.mark.parametrize(("usd", "colour"), [("63000", "green"), ("63001", "yellow")])
def test_a_price_source_far_off_is_yellow(usd, colour, till, ticker):
    with TickerServer() as other:
        other.price(usd)
        near = (ticker.url, f"{ticker.url}?again")
        far = other.url.replace("127.0.0.1", "localhost")
        finding = found(till, **sources(*near, far))["price source localhost"]
    assert finding.colour == colour and "% from the median" in finding.sentence


def test_an_answer_without_a_price_says_where_it_was_looked_for(till, ticker):
    source = {"BLOCKTILL_PRICE_SOURCES": f"{ticker.url}#/last"}
    assert (
        "nothing at /last" in found(till, **source)["price source 127.0.0.1"].sentence
    )


# An answer in place of data, and what the remedy says, for an explorer and for a ticker alike.
ELSE = {
    "a redirect": (
        say(b"", 301, Location="https://other.example/"),
        "no redirect is followed",
    ),
    "a temporary redirect": (say(b"", 307, Location="/x"), "no redirect is followed"),
    "a page": (
        say(b"\n<!doctype html>", **{"Content-Type": "text/html"}),
        "shows a page for people",
    ),
    "a compressed answer": (
        say(b"\x1f\x8b", **{"Content-Encoding": "gzip"}),
        "turn off compression",
    ),
    "no such path": (say(b"", 404), "another one in"),
}


@pytest.mark.parametrize("case", ELSE)
def test_who_answers_something_else_gets_the_remedy_for_it(case, till, released):
    answer, remedy = ELSE[case]
    with FakeEsplora() as other:
        other.instead = lambda _: answer
        root = other.root.replace("127.0.0.1", "localhost")
        explorers = {"BLOCKTILL_EXPLORERS": f"{root} {explorer_of(till)}"}
        everything = found(till, **explorers, **sources(f"{root}/usd"))
    for name, setting in (
        ("explorer", "BLOCKTILL_EXPLORERS"),
        ("price source", "PRICE_SOURCES"),
    ):
        finding = everything[f"{name} localhost"]
        assert remedy in finding.remedy and setting in finding.remedy, finding


@pytest.mark.parametrize(("eur", "colour"), [("55200", "green"), ("0", "red")])
def test_the_currency_that_a_merchant_counts_in_is_examined(eur, colour, till, ticker):
    assert not [name for name in colours(till) if name.startswith("price in")]
    ticker.price("60000", eur=eur)
    till.shop.sql("UPDATE merchant SET currency = 'EUR'")
    everything = found(till)
    till.shop.sql("UPDATE merchant SET currency = 'USD'")
    assert (
        everything["price in EUR"].colour == colour
        and everything["price"].colour == "green"
    )
    assert (
        "55200 EUR for a bitcoin" in everything["price in EUR"].sentence
        or colour == "red"
    )


def test_the_currency_of_a_link_is_examined_while_it_is_active(till, ticker):
    ticker.price("60000", eur="55200")
    link = Terminal(till).json(
        "link", "create", "shop", "--currency", "EUR", "--amount", "25"
    )
    assert "price in EUR" in colours(till)
    Terminal(till).run("link", "deactivate", link["id"])
    assert "price in EUR" not in colours(till)


def test_a_variable_that_nobody_reads_is_yellow(till):
    finding = found(till, BLOCKTILL_EXPLORER="x")["setting BLOCKTILL_EXPLORER"]
    assert finding.colour == "yellow" and "settings.md" in finding.remedy


def test_a_setting_is_shown_without_its_secrets(till):
    root = explorer_of(till).replace("://", "://me:secret@")
    everything = found(till, BLOCKTILL_EXPLORERS=root, BLOCKTILL_TRUSTED_PROXIES="2")
    assert everything["setting BLOCKTILL_TRUSTED_PROXIES"].sentence == "2 (environment)"
    assert "secret" not in str(everything)


EXAMPLE = {"BLOCKTILL_BASE_URL": "https://pay.example.com"}  # as the documents have it


def look_at_environment(**environ):
    shop = Shop(settings.read(environ), environ, Clock(), lambda _: PLENTY)
    return {finding.name: finding for finding in findings(shop)}


@pytest.mark.parametrize(
    ("network", "url", "colour"),
    [
        pytest.param(
            "mainnet",
            EXAMPLE["BLOCKTILL_BASE_URL"],
            "red",
            id="the example's on mainnet",
        ),
        pytest.param(
            "testnet4", EXAMPLE["BLOCKTILL_BASE_URL"], "yellow", id="on a test network"
        ),
        pytest.param(
            "mainnet", "https://example.org/pay", "red", id="any reserved name"
        ),
        pytest.param("mainnet", "https://shop.invalid", "red", id="one that never is"),
        pytest.param(
            "mainnet", "https://pay.harbour-roasters.com", "green", id="a real name"
        ),
        pytest.param(
            "mainnet", "https://myexample.com", "green", id="one that ends alike"
        ),
        pytest.param(
            "mainnet", "http://pay.harbour-roasters.com", "yellow", id="without TLS"
        ),
        pytest.param(
            "mainnet", f"http://{'a' * 56}.onion", "green", id="an onion service"
        ),
        pytest.param("mainnet", "https://127.0.0.1", "yellow", id="this machine"),
        pytest.param("regtest", "http://127.0.0.1:8000", "green", id="the sandbox's"),
    ],
)
def test_where_payers_are_sent_is_judged(network, url, colour):
    everything = look_at_environment(
        **EXAMPLE | {"BLOCKTILL_NETWORK": network, "BLOCKTILL_BASE_URL": url}
    )
    finding = everything.pop("base URL")
    assert finding.colour == colour and url in finding.sentence
    assert bool(finding.remedy) == (colour != "green")
    assert {other.colour for other in everything.values()} == {"green"}


@pytest.mark.parametrize(
    ("url", "colour"),
    [
        pytest.param("https://pay.shop", "green", id="over TLS"),
        pytest.param("http://127.0.0.1:8000", "green", id="on this machine alone"),
        pytest.param("http://[::1]:8000", "green", id="likewise, in version 6"),
        pytest.param("http://abc.onion", "green", id="through Tor"),
        pytest.param(
            "http://192.168.1.5:8000", "red", id="in the house, for all who are there"
        ),
        pytest.param("http://pay.shop", "red", id="in the clear"),
    ],
)
def test_the_merchants_pages_are_not_for_who_listens(url, colour):
    on = EXAMPLE | {"BLOCKTILL_MERCHANT_PAGES": "on", "BLOCKTILL_BASE_URL": url}
    finding = look_at_environment(**on)["merchant's pages"]
    assert finding.colour == colour and f"{url}/merchant" in finding.sentence
    assert bool(finding.remedy) == (colour == "red")
    assert "merchant's pages" not in look_at_environment(
        **on | {"BLOCKTILL_MERCHANT_PAGES": "off"}
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:p@w:1/x", "postgresql://***@w:1/x"),
        ("https://a/b?pair=X&key=K#/c https://d@e/",
            "https://a/b?pair=***&key=***#/c https://***@e/"),
        ("https://a/v1/0a1b2c3d4e5f6071/btcusd#/c https://b.example/api/v3/simple/price#/c",
            "https://a/v1/***/btcusd#/c https://b.example/api/v3/simple/price#/c"),
        ("sqlite:////var/lib/blocktill/blocktill.db", "sqlite:////var/lib/blocktill/blocktill.db"),
        ("redis://:secret@host:1/0", "redis://***@host:1/0"),
        ("1 3@1000", "1 3@1000"),
    ],
)  # fmt: skip
def test_what_may_be_secret_is_masked(text, shown):
    assert mask(text) == shown


def test_money_that_comes_between_two_readings_is_no_fault(till):
    """A check runs beside it, and settles just after the doctor has read the total."""
    till.pay(till.shop.invoice())
    till.mine()
    elsewhere = open_database(till.shop.environ["BLOCKTILL_DATABASE_URL"])
    really = balances.OF_MERCHANT

    class Beside(Database):
        settled = 0

        def get_or_none(self, query, **values):
            found = super().get_or_none(query, **values)
            if query is really and not Beside.settled:
                Beside.settled = len(
                    till.checker(elsewhere, till.explorers(db=elsewhere))
                    .run()
                    .new_statuses
                )
            return found

    beside = Beside(till.shop.service.db.connection)
    shop = Shop(till.settings, {}, till.clock, lambda _: PLENTY)
    (finding,) = totals(shop, beside)
    assert (finding.colour, finding.sentence) == (
        "green",
        "0 satoshis confirmed, 0 in all",
    )
    assert Beside.settled == 1
    (finding,) = totals(shop, beside)
    assert finding.colour == "green" and not finding.sentence.startswith("0 ")
    elsewhere.close()
