"""`btcpay doctor`: a planted fault for each finding."""

import re
import shlex
from datetime import timedelta
from email.utils import formatdate
from pathlib import Path

import pytest
import requests
from builders import Clock, TickerServer
from databases import ON_POSTGRES, about_sqlite, empty_database
from fake_esplora import FakeEsplora, Terminal, Till, say
from findings import PLENTY, found

from btcpay.health.doctor.disk import is_its_own, modes
from btcpay.health.doctor.explorers import Probe, judge_tip, of_sandbox
from btcpay.health.doctor.explorers import clock as clock_findings
from btcpay.health.doctor.finding import Finding, Shop
from btcpay.health.doctor.records import totals
from btcpay.health.doctor.settings import findings, masked
from btcpay.merchants.account import derive
from btcpay.settings import settings
from btcpay.values.errors import BadStatus, Unreachable
from btcpay.values.networks import NETWORKS
from storage import versions
from storage.database import Database, open_database
from storage.queries import merchants
from storage.queries.totals import balances

NOBODY = "http://127.0.0.1:9"


def colours(till: Till, **environ: str) -> dict[str, str]:
    return {name: finding.colour for name, finding in found(till, **environ).items()}


def reds(till: Till, **environ: str) -> set[str]:
    return {name for name, colour in colours(till, **environ).items() if colour == "red"}


def database_of(till: Till) -> Path:
    return Path(till.shop.environ["BTCPAY_DATABASE_URL"].removeprefix("sqlite:///"))


def explorer_of(till: Till) -> str:
    return till.settings.explorers[0]


# The whole


def test_a_healthy_shop_is_green_and_the_command_says_so(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.check()
    everything = found(till)
    assert ("disk" in everything) != ON_POSTGRES and ("file modes" in everything) != ON_POSTGRES
    assert {finding.colour for finding in everything.values()} == {"green"}
    assert {finding.remedy for finding in everything.values()} == {""}
    output, _ = Terminal(till).run("doctor", "--integrity")
    assert {line.split()[0] for line in output.splitlines()} <= {"green", "yellow"}
    assert f"{invoice['amount_sats']} satoshis confirmed" in output


def test_every_finding_that_is_not_green_has_a_remedy(till):
    till.sandbox.switches.explorer_up = False
    till.clock.move(hours=3)
    for finding in found(till, free_bytes=0).values():
        assert bool(finding.remedy) == (finding.colour != "green"), finding


def test_the_calls_are_bounded_and_counted_in_the_quota(lied_to, clock):
    till = lied_to()
    found(till)
    assert len(till.liar.asked) == 3 + 1 + 10
    assert till.shop.sql("SELECT sum(calls) FROM explorer_use").fetchone() == (14,)
    spent = colours(till, BTCPAY_EXPLORER_CALLS_PER_HOUR="14")
    assert spent["explorer 127.0.0.1"] == "yellow"  # its hour is over, it is not ill
    assert len(till.liar.asked) == 14


# Database and disk


def test_a_missing_database_is_red_and_is_not_made(till, tmp_path):
    missing = tmp_path / "no.db"
    everything = found(till, BTCPAY_DATABASE_URL=f"sqlite:///{missing}")
    assert everything["database"].colour == "red" and "restore" in everything["database"].remedy
    assert everything["explorer 127.0.0.1"].colour == "green"
    assert not missing.exists()


def test_the_kind_of_the_database_is_named(till):
    kind = "PostgreSQL [0-9]+[.][0-9]+" if ON_POSTGRES else "SQLite"
    assert re.fullmatch(
        f"{kind}, version {versions.VERSION}, regtest", found(till)["database"].sentence
    )


def test_an_old_schema_is_red_and_the_rest_is_still_looked_into(till):
    till.shop.sql("DELETE FROM schema_version")
    everything = found(till)
    assert everything["database"].colour == "red"
    assert "btcpay migrate" in everything["database"].remedy
    assert everything["price"].colour == "green" and "totals of shop" not in everything
    assert Terminal(till).json("doctor", status=1)[0]["name"] == "database"


def test_a_newer_schema_is_red(till):
    till.shop.sql("UPDATE schema_version SET version = 9999")
    finding = found(till)["database"]
    assert finding.colour == "red" and "newer program" in finding.remedy


@pytest.mark.parametrize("content", [b"", b"no database at all " * 500], ids=["empty", "foreign"])
def test_a_file_that_is_no_database_is_red(content, till, tmp_path):
    path = tmp_path / "other.db"
    path.write_bytes(content)
    assert colours(till, BTCPAY_DATABASE_URL=f"sqlite:///{path}")["database"] == "red"


@about_sqlite
def test_a_damaged_database_is_red_and_the_rest_is_still_looked_into(till, tmp_path):
    for _ in range(20):
        till.shop.invoice()
    path = tmp_path / "damaged.db"
    Terminal(till).run("backup", str(path))
    raw = bytearray(path.read_bytes())
    raw[4096 * 2 : 4096 * 20] = b"\xff" * 4096 * 18
    path.write_bytes(raw)
    everything = found(till, BTCPAY_DATABASE_URL=f"sqlite:///{path}")
    assert everything["database"].colour == "red" and "backup" in everything["database"].remedy
    assert everything["explorer 127.0.0.1"].colour == "green"


def test_a_database_of_another_network_is_red(till):
    till.shop.sql("UPDATE meta SET value = 'signet' WHERE name = 'network'")
    finding = found(till)["database"]
    assert "belongs to signet" in finding.sentence
    assert finding.remedy.endswith("another database, or BTCPAY_NETWORK to signet")
    assert finding.remedy in Terminal(till).run("link", "list", status=1)[1]


def test_an_empty_database_is_red(till, tmp_path):
    url = empty_database(tmp_path)
    if url.startswith("sqlite"):
        (tmp_path / "new").mkdir()
        (tmp_path / "new/btcpay.db").touch()
    finding = found(till, BTCPAY_DATABASE_URL=url)["database"]
    assert finding.colour == "red" and "run `btcpay migrate`" in finding.remedy


@about_sqlite
@pytest.mark.parametrize(
    ("name", "mode"),
    [("btcpay.db", 0o604), ("btcpay.db", 0o640), ("btcpay.db-wal", 0o644), (".", 0o755)],
)
def test_files_that_others_may_read_are_red(name, mode, till):
    till.shop.invoice()
    assert colours(till)["file modes"] == "green"
    path = database_of(till).parent / name
    path.chmod(mode)
    finding = found(till)["file modes"]
    assert finding.colour == "red" and finding.remedy


def of_modes(path: Path) -> list[Finding]:
    """What is found about the files of a SQLite database, the first alone is there."""
    read = settings.read({"BTCPAY_DATABASE_URL": f"sqlite:///{path}"})
    return list(modes(Shop(read, {}, Clock(), lambda _: PLENTY)))


@about_sqlite
@pytest.mark.parametrize("beside", ["", "notes.txt"], ids=["alone", "beside something else"])
@pytest.mark.parametrize("folder_mode", [0o700, 0o755, 0o1777])
@pytest.mark.parametrize("file_mode", [0o600, 0o644])
def test_the_remedy_of_open_files_harms_nobody_else(beside, folder_mode, file_mode, tmp_path):
    """It names files that are the database's, and no folder that is not its alone."""
    folder = tmp_path / "a shop"
    folder.mkdir()
    path = folder / "shop.db"
    for name in ("shop.db", "shop.db-wal", "shop.db.check.lock", ".shop.db.x.part", beside):
        (folder / name).touch() if name else None
    path.chmod(file_mode), (folder / "shop.db-wal").chmod(0o600)
    folder.chmod(folder_mode)
    (finding,) = of_modes(path)
    wanted = [f"chmod 600 '{path}'"] if file_mode == 0o644 else []
    if folder_mode == 0o755 and not beside:
        wanted.insert(0, f"chmod 700 '{folder}'")
    elif folder_mode != 0o700:
        own = "move the database into a folder of its own, such as /var/lib/btcpay (mode 700)"
        wanted.insert(0, own)
    assert finding.remedy == "; ".join(wanted)


def test_a_folder_of_the_system_is_never_closed(tmp_path):
    assert not is_its_own(Path("/srv/btcpay.db"))
    assert not is_its_own(Path("/btcpay.db"))


@about_sqlite
def test_a_folder_in_the_databases_place_is_called_one(till, tmp_path):
    everything = found(till, BTCPAY_DATABASE_URL=f"sqlite:///{tmp_path}")
    assert everything["database"].sentence == f"{tmp_path} is a folder, not a file"
    assert everything["database"].remedy == (
        "end BTCPAY_DATABASE_URL with a file's name, such as /var/lib/btcpay/btcpay.db"
    )
    assert "file modes" not in everything


@about_sqlite
def test_a_folder_that_others_may_only_pass_through_is_not(till):
    database_of(till).parent.chmod(0o711)
    assert colours(till)["file modes"] == "green"


@about_sqlite
@pytest.mark.parametrize(
    ("free_bytes", "colour"),
    [(10**9, "green"), (10**9 - 1, "yellow"), (10**8, "yellow"), (10**8 - 1, "red"), (0, "red")],
)
def test_a_full_disk_is_red_before_it_is_full(free_bytes, colour, till):
    assert found(till, free_bytes=free_bytes)["disk"].colour == colour


# The rows


@pytest.mark.parametrize("column", ["confirmed_sats", "total_sats"])
def test_a_total_that_is_not_the_sum_of_its_rows_is_red(till, column):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    till.check()
    more = "total_sats = total_sats + 1" + (
        ", confirmed_sats = confirmed_sats + 1" if column == "confirmed_sats" else ""
    )
    till.shop.sql(f"UPDATE balance SET {more}")  # noqa: S608
    assert colours(till)["totals of shop"] == "red"
    told = Terminal(till).json("doctor", "--integrity", status=1)
    (red,) = (finding for finding in told if finding["colour"] == "red")
    assert "sum up to" in red["sentence"] and "restore" in red["remedy"]


def test_without_integrity_the_doctor_reads_no_more_of_a_large_database_than_of_a_small_one(till):
    """Neither pages nor totals: both take as long as there are payments."""
    till.shop.sql("UPDATE balance SET total_sats = total_sats + 1")
    names = [finding["name"] for finding in Terminal(till).json("doctor")]
    assert "database" in names and "totals of shop" not in names


def test_a_merchant_without_a_total_is_red(till):
    till.shop.sql("DELETE FROM balance")
    assert colours(till)["totals of shop"] == "red"


def test_a_check_that_is_too_long_ago_is_red(till):
    till.check()
    till.clock.move(minutes=16)
    assert colours(till)["check"] == "red"
    assert colours(till, BTCPAY_CHECK_MAX_AGE_MIN="60")["check"] == "green"


def test_before_the_first_check_it_is_yellow(till):
    assert colours(till)["check"] == "yellow"
    assert "every minute" in Terminal(till).run("doctor")[0]


def test_a_check_that_was_not_complete_does_not_count(till):
    till.check()
    till.clock.move(hours=1)
    till.shop.invoice()
    till.sandbox.switches.explorer_up = False
    till.check()
    assert colours(till)["check"] == "red"


@pytest.mark.parametrize(
    ("said", "given_out", "colour"),
    [
        pytest.param(None, 14, "green", id="three quarters of the twenty that wallets come with"),
        pytest.param(None, 15, "yellow", id="more, though the wallet still sees them"),
        pytest.param(200, 149, "green", id="three quarters of what the wallet is said to have"),
        pytest.param(200, 150, "yellow", id="more than that"),
        pytest.param(200, 200, "yellow", id="beyond it, too"),
    ],
)
def test_the_gap_is_yellow_before_it_outgrows_what_the_wallet_is_said_to_have(
    said, given_out, colour, till
):
    if said:
        assert f"is said to be {said}" in Terminal(till).run("wallet", "gap", "shop", str(said))[0]
    till.shop.sql(f"UPDATE merchant SET next_index = {given_out}")  # noqa: S608
    finding = found(till)["gap of shop"]
    assert finding.colour == colour and f"gap limit of {given_out + 1}" in finding.sentence
    assert f"said to have {said or 20}" in finding.sentence
    asks = f"`btcpay wallet gap shop {given_out + 101}`" in finding.remedy
    assert asks == (colour == "yellow")


def test_what_the_finding_asks_for_makes_it_green(till):
    till.shop.sql("UPDATE merchant SET next_index = 60, name = 'My shop'")
    asked = re.search(r"`btcpay (wallet gap .*?)`", found(till)["gap of My shop"].remedy)[1]
    Terminal(till).run(*shlex.split(asked))
    assert found(till)["gap of My shop"].colour == "green"


# The explorers


def test_an_explorer_of_another_network_is_red_beside_a_right_one(till):
    with FakeEsplora() as other:
        other.instead = lambda path: say("00" * 32) if path == "/block-height/0" else None
        roots = f"{explorer_of(till)} {other.root.replace('127.0.0.1', 'localhost')}"
        everything = found(till, BTCPAY_EXPLORERS=roots)
    assert everything["explorer 127.0.0.1"].colour == "green"
    assert everything["explorer localhost"].colour == "red"
    assert "another network" in everything["explorer localhost"].sentence
    assert "BTCPAY_NETWORK" in everything["explorer localhost"].remedy


def test_one_explorer_down_of_two_is_yellow(till):
    roots = f"http://localhost:9 {explorer_of(till)}"
    everything = colours(till, BTCPAY_EXPLORERS=roots)
    assert everything["explorer localhost"] == "yellow"
    assert everything["explorer 127.0.0.1"] == everything["addresses of shop"] == "green"


def test_all_explorers_down_are_red(till):
    till.sandbox.switches.explorer_up = False
    roots = f"http://localhost:9 {explorer_of(till)}"
    everything = colours(till, BTCPAY_EXPLORERS=roots)
    assert everything["explorer localhost"] == everything["explorer 127.0.0.1"] == "red"
    assert everything["addresses"] == "yellow"


@pytest.mark.parametrize("path", ["/raw", "/blocks"])
def test_an_explorer_that_does_not_show_blocks_is_red(path, lied_to, clock):
    till = lied_to()
    till.mine()
    till.liar.lies[f"{path}$"] = lambda _: say("not here", 404)
    finding = found(till)["explorer 127.0.0.1"]
    assert finding.colour == "red" and "404" in finding.sentence


def test_an_explorer_with_a_false_block_is_red(lied_to):
    till = lied_to()
    till.mine()
    till.liar.lies["/raw$"] = lambda _: b"\x00" * 300
    assert "cannot show its last block" in found(till)["explorer 127.0.0.1"].sentence


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unreachable("could not be asked"), ("nothing answers at port 8001", "`btcpay sandbox`")),
        (BadStatus(503), ("answered HTTP 503", "explorer up")),
        (BadStatus(404), None),
    ],
    ids=["ended", "switched off", "something else"],
)
def test_of_the_sandbox_it_says_how_it_is_started_again(error, told):
    found = of_sandbox(error)
    assert bool(found) == bool(told)
    assert all(word in said for word, said in zip(told or (), found or (), strict=True))


def test_without_an_explorer_the_clock_is_not_to_blame(till):
    assert found(till, BTCPAY_EXPLORERS=NOBODY)["clock"].remedy == "repair the explorers first"


def test_an_explorer_that_is_stuck_behind_another_is_yellow(lied_to):
    till = lied_to(honest_too=True)
    till.mine(5)
    height = till.sandbox.chain.ledger.height
    behind = {"by": 3}

    def newest(_: object) -> object:
        return requests.get(f"{till.liar.honest}/blocks/{height - behind['by']}", timeout=10).json()

    till.liar.lies["/blocks$"] = newest
    roots = f"{till.liar.root.replace('127.0.0.1', 'localhost')} {till.settings.explorers[1]}"
    everything = found(till, BTCPAY_EXPLORERS=roots)
    assert everything["explorer localhost"].colour == "yellow"
    assert "3 blocks behind" in everything["explorer localhost"].sentence
    behind["by"] = 2
    assert colours(till, BTCPAY_EXPLORERS=roots)["explorer localhost"] == "green"


def test_a_tip_below_what_the_last_check_saw_is_red(till):
    till.shop.invoice()
    till.check()
    till.shop.sql(
        "UPDATE block SET height = height + 3 WHERE height = (SELECT MAX(height) FROM block)"
    )
    assert "3 blocks behind" in found(till)["explorer 127.0.0.1"].sentence
    assert colours(till)["explorer 127.0.0.1"] == "red"


def test_how_far_the_chain_is_read(till):
    assert "no block is known" in found(till)["chain"].sentence
    till.shop.invoice()
    till.check()
    assert "every block is read" in found(till)["chain"].sentence
    till.shop.sql("UPDATE block SET read_at = NULL WHERE height = (SELECT MAX(height) FROM block)")
    finding = found(till)["chain"]
    assert finding.colour == "yellow" and "1 block is still to be read" in finding.sentence


@pytest.mark.parametrize(
    ("network", "minutes", "stale"),
    [
        pytest.param("mainnet", 120, False, id="two hours happen"),
        pytest.param("mainnet", 121, True, id="more does not"),
        pytest.param("regtest", 10_000, False, id="on regtest blocks come when somebody mines"),
    ],
)
def test_a_stale_tip(network, minutes, stale, clock):
    probe = Probe(NOBODY, "x", height=5, tip_at=clock())
    judge_tip(probe, 5, NETWORKS[network], clock() + timedelta(minutes=minutes))
    assert bool(probe.trouble) == stale


# The clock, and the addresses of others


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


def test_one_explorer_with_the_same_time_is_enough(till):
    probes = [Probe(NOBODY, "x", ahead=timedelta(seconds=s)) for s in (-4000, 3)]
    shop = Shop(till.settings, {}, till.clock, lambda _: PLENTY)
    assert [finding.colour for finding in clock_findings(shop, probes)] == ["green"]


def test_a_block_hours_ahead_says_that_the_clock_is_behind(till):
    tip_at = till.clock() + timedelta(hours=2, seconds=1)
    shop = Shop(till.settings, {}, till.clock, lambda _: PLENTY)
    assert [f.colour for f in clock_findings(shop, [Probe(NOBODY, "x", tip_at=tip_at)])] == ["red"]


@pytest.mark.parametrize(("ahead", "colour"), [(0, "red"), (9, "red"), (10, "green")])
def test_a_used_address_ahead_of_the_counter_is_red(ahead, colour, till):
    till.shop.invoice()
    row = till.shop.service.db.only(merchants.BY_ID, id=till.shop.merchant_id)
    index = row["next_index"] + ahead
    address = derive(row["xpub"], row["script_type"], index, till.settings.network)
    till.sandbox.wallet.pay(address, 10_000, till.now)
    finding = found(till)["addresses of shop"]
    assert finding.colour == colour
    if colour == "red":
        assert f"number {index} is used" in finding.sentence and "--in-place" in finding.remedy


# The prices


def sources(*urls: str) -> dict[str, str]:
    return {"BTCPAY_PRICE_SOURCES": " ".join(f"{url}#/usd" for url in urls)}


def test_one_price_source_down_of_three_is_yellow(till, ticker):
    urls = (ticker.url, ticker.url.replace("127.0.0.1", "localhost"), "http://127.0.0.2:9/")
    everything = colours(till, **sources(*urls))
    assert everything["price source 127.0.0.2"] == "yellow" and everything["price"] == "green"


def test_without_a_quorum_the_sources_in_trouble_are_red(till, ticker):
    everything = found(till, **sources(ticker.url, "http://localhost:9/"))
    assert everything["price source localhost"].colour == everything["price"].colour == "red"
    assert everything["price source 127.0.0.1"].colour == "green"
    fewer = "no price: of 2 sources 2 must agree within 5 %, and fewer do"
    assert everything["price"].sentence == fewer


@pytest.mark.parametrize(
    ("urls", "told"), [(1, "none of 1 source answers"), (2, "none of 2 sources answers")]
)
def test_when_no_source_answers_it_says_so(urls, told, till):
    everything = found(till, **sources(*["http://localhost:9/", "http://127.1:9/"][:urls]))
    assert everything["price"].sentence == f"no price: {told}"


@pytest.mark.parametrize(("usd", "colour"), [("63000", "green"), ("63001", "yellow")])
def test_a_price_source_far_off_is_yellow(usd, colour, till, ticker):
    with TickerServer() as other:
        other.price(usd)
        near = (ticker.url, ticker.url.replace("127.0.0.1", "localhost"))
        far = other.url.replace("127.0.0.1", "127.1")
        everything = found(till, **sources(*near, far))
    assert everything["price source 127.1"].colour == colour
    assert "% from the median" in everything["price source 127.1"].sentence


def test_an_answer_without_a_price_says_where_it_was_looked_for(till, ticker):
    source = {"BTCPAY_PRICE_SOURCES": f"{ticker.url}#/last"}
    assert "nothing at /last" in found(till, **source)["price source 127.0.0.1"].sentence


@pytest.mark.parametrize(("eur", "colour"), [("55200", "green"), ("0", "yellow")])
def test_a_second_currency_is_examined_where_a_merchant_has_one(eur, colour, till, ticker):
    assert not [name for name in colours(till) if name.startswith("price in")]
    ticker.price("60000", eur=eur)
    till.shop.sql("UPDATE merchant SET currency = 'EUR'")
    everything = found(till)
    till.shop.sql("UPDATE merchant SET currency = NULL")
    assert everything["price in EUR"].colour == colour and everything["price"].colour == "green"
    assert "55200 EUR for a bitcoin" in everything["price in EUR"].sentence or colour == "yellow"


# The settings


def test_a_wrong_setting_stops_the_command_with_its_name(till):
    said = Terminal(till).run("doctor", status=2, BTCPAY_CONFIRMATIONS="none")[1]
    assert "BTCPAY_CONFIRMATIONS" in said


def test_defaults_are_counted_in_the_line_and_named_in_json(till):
    said = Terminal(till).run("doctor")[0]
    assert re.search(r"(?m)^green  settings: \d+ have their defaults \(--json names them\)$", said)
    (told,) = (one for one in Terminal(till).json("doctor") if one["name"] == "settings")
    assert "BTCPAY_CONFIRMATIONS" in told["sentence"]
    assert set(told) == {"name", "colour", "sentence", "remedy"}


def test_a_variable_that_nobody_reads_is_yellow(till):
    finding = found(till, BTCPAY_EXPLORER="x")["setting BTCPAY_EXPLORER"]
    assert finding.colour == "yellow" and finding.remedy == "did you mean BTCPAY_EXPLORERS?"


def test_settings_say_where_they_are_from_and_keep_secrets(till):
    root = explorer_of(till).replace("://", "://me:secret@")
    everything = found(till, BTCPAY_EXPLORERS=root, BTCPAY_TRUSTED_PROXIES="2")
    assert everything["setting BTCPAY_TRUSTED_PROXIES"].sentence == "2 (environment)"
    assert "BTCPAY_CONFIRMATIONS" in everything["settings"].sentence
    assert "secret" not in str(everything)


EXAMPLE = {"BTCPAY_BASE_URL": "https://pay.example.com"}  # as the documents have it


def look_at_environment(**environ: str) -> dict[str, Finding]:
    shop = Shop(settings.read(environ), environ, Clock(), lambda _: PLENTY)
    return {finding.name: finding for finding in findings(shop)}


@pytest.mark.parametrize(
    ("network", "url", "colour"),
    [
        pytest.param("mainnet", EXAMPLE["BTCPAY_BASE_URL"], "red", id="the example's on mainnet"),
        pytest.param("testnet4", EXAMPLE["BTCPAY_BASE_URL"], "yellow", id="on a test network"),
        pytest.param("mainnet", "https://example.org/pay", "red", id="any reserved name"),
        pytest.param("mainnet", "https://shop.invalid", "red", id="one that never is"),
        pytest.param("mainnet", "https://pay.harbour-roasters.com", "green", id="a real name"),
        pytest.param("mainnet", "https://myexample.com", "green", id="one that ends alike"),
        pytest.param("mainnet", "http://pay.harbour-roasters.com", "yellow", id="without TLS"),
        pytest.param("mainnet", f"http://{'a' * 56}.onion", "green", id="an onion service"),
        pytest.param("mainnet", "https://127.0.0.1", "yellow", id="this machine"),
        pytest.param("regtest", "http://127.0.0.1:8000", "green", id="the sandbox's"),
    ],
)
def test_where_payers_are_sent_is_judged(network, url, colour):
    everything = look_at_environment(
        **EXAMPLE | {"BTCPAY_NETWORK": network, "BTCPAY_BASE_URL": url}
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
        pytest.param("http://192.168.1.5:8000", "red", id="in the house, for all who are there"),
        pytest.param("http://pay.shop", "red", id="in the clear"),
    ],
)
def test_the_merchants_pages_are_not_for_who_listens(url, colour):
    on = EXAMPLE | {"BTCPAY_MERCHANT_PAGES": "on", "BTCPAY_BASE_URL": url}
    finding = look_at_environment(**on)["merchant's pages"]
    assert finding.colour == colour and f"{url}/merchant" in finding.sentence
    assert bool(finding.remedy) == (colour == "red")
    assert "merchant's pages" not in look_at_environment(**on | {"BTCPAY_MERCHANT_PAGES": "off"})


@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:8118"])
def test_a_proxy_of_the_environment_that_nobody_reads_is_told(proxy):
    everything = look_at_environment(HTTPS_PROXY="http://a:1", all_proxy="", BTCPAY_PROXY=proxy)
    assert [name for name in everything if "prox" in name.lower() and "setting" not in name] == (
        [] if proxy else ["HTTPS_PROXY"]
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:p@w:1/x", "postgresql://***@w:1/x"),
        (
            "https://a/b?pair=X&key=K#/c https://d@e/",
            "https://a/b?pair=***&key=***#/c https://***@e/",
        ),
        ("redis://:secret@host:1/0", "redis://***@host:1/0"),
        ("1 3@1000", "1 3@1000"),
    ],
)
def test_what_may_be_secret_is_masked(text, shown):
    assert masked(text) == shown


# What the examination knows


def test_money_that_comes_between_two_readings_is_no_fault(till):
    """A check runs beside it, and settles just after the doctor has read the total."""
    till.pay(till.shop.invoice())
    till.mine()
    elsewhere = open_database(till.shop.environ["BTCPAY_DATABASE_URL"])
    really = balances.OF_MERCHANT

    class Beside(Database):
        settled = 0

        def row(self, query, **values):
            found = super().row(query, **values)
            if query is really and not Beside.settled:
                Beside.settled = len(
                    till.checker(elsewhere, till.explorers(elsewhere)).run().changed
                )
            return found

    beside = Beside(till.shop.service.db.connection)
    shop = Shop(till.settings, {}, till.clock, lambda _: PLENTY)
    (finding,) = totals(shop, beside)
    assert (finding.colour, finding.sentence) == ("green", "0 satoshis confirmed, 0 in all")
    assert Beside.settled == 1
    (finding,) = totals(shop, beside)
    assert finding.colour == "green" and not finding.sentence.startswith("0 ")
    elsewhere.close()
