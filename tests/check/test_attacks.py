"""Attacks of an adversarial review: each once lost, invented or blocked something."""

import json

import pytest
from peewee import OperationalError

from btcpay.check import run
from btcpay.sandbox.node.script import script_of
from storage.queries import keys
from tests.support.builders import clean_environ
from tests.support.fake_esplora import Liar, Terminal, say
from tests.support.forge import forge
from tests.support.rival import Rival


def test_an_explorer_that_is_behind_does_not_expire_what_another_saw_paid(till):
    """The mempool of one that stands still shows nothing that has come since."""
    invoice = till.shop.invoice(expires_in_hours=1)
    till.mine(3)
    till.pay(invoice)
    till.look_for(invoice)
    till.clock.move(hours=1)
    till.liar.lies = {"/address/": lambda _: say("down", 503)}
    with Liar(till.liar.honest) as behind:
        behind.instead = Rival(till, till.sandbox.chain.ledger.height - 3)
        behind.lies = {"/address/": lambda _: []}
        for _ in range(2):
            assert till.check(till.liar.root, behind.root).put_off == 1
            till.clock.move(minutes=1)
        assert behind.count("/address/") == 0
    assert till.look(invoice)["status"] == "open" and till.kinds(invoice) == ["seen"]


def test_a_revoked_key_stays_revoked_when_the_clock_is_set_back(shop):
    secret = shop.issue("read")
    shop.service.db.run(keys.REVOKE, id=shop.key_ids[secret], at=0)
    shop.clock.move(hours=-1)
    assert shop.get("/balance", secret).status_code == 401


def test_a_title_cannot_command_the_terminal(shop):
    shop.link(title="\x1b[2Jgone\nlnk_forged  active")
    listed = forge().run(shop.environ, ["link", "list"]).output
    assert "\x1b" not in listed and len(listed.splitlines()) == 2


def test_processes_that_make_a_database_together_make_one(tmp_path, ticker):
    environ = clean_environ(
        BLOCKTILL_DATABASE_URL=f"sqlite:///{tmp_path}/new/blocktill.db"
    )
    started = [forge().start(environ, ["migrate", "--json"]) for _ in range(4)]
    results = [json.loads(child.communicate(timeout=60)[0]) for child in started]
    assert [child.returncode for child in started] == [0] * 4
    assert sorted(one["new"] for one in results) == [False, False, False, True]
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_coinbase_waits_for_its_maturity(till):
    invoice = till.shop.invoice()
    chain = till.sandbox.chain
    chain._reward_script, usual = (
        script_of(invoice["deposit_address"]),
        chain._reward_script,
    )
    till.mine()
    chain._reward_script = usual
    till.mine(98)
    for _ in range(2):
        assert till.check().new_statuses == {} and till.balance()[0] == 0
    assert till.mine_and_check().new_statuses == {invoice["id"]: "paid"}
    (proof,) = Terminal(till).json("invoice", "show", invoice["id"], "--proof")
    assert proof["payment"]["position"] == 0


def test_addresses_that_always_fail_do_not_keep_the_others_from_their_look(lied_to):
    till = lied_to(BLOCKTILL_EXPLORER_CALLS_PER_HOUR="600")
    bad = [till.shop.invoice(expires_in_hours=1) for _ in range(8)]
    good = [till.shop.invoice(expires_in_hours=1) for _ in range(12)]
    addresses = "|".join(invoice["deposit_address"] for invoice in bad)
    till.liar.lies = {addresses: lambda _: say("error", 500)}
    till.clock.move(hours=2)
    for _ in range(4):
        till.clock.move(minutes=1)
        till.check()
    assert {till.look(invoice)["status"] for invoice in good} == {"expired"}
    assert {till.look(invoice)["status"] for invoice in bad} == {"open"}
    till.liar.asked.clear()
    for _ in range(10):
        till.clock.move(minutes=1)
        till.check()
    assert till.liar.count(addresses) < 10 * len(bad)
    till.liar.lies = {}
    till.clock.move(hours=1)
    till.check()
    assert {till.look(invoice)["status"] for invoice in bad} == {"expired"}


def test_a_run_that_ends_with_an_error_gives_back_what_it_had_counted(
    lied_to, monkeypatch
):
    till = lied_to(BLOCKTILL_EXPLORER_CALLS_PER_HOUR="600")
    till.shop.invoice()

    def locked(*_):
        raise OperationalError("database is locked")

    till.check()
    before = till.explorers().allowance().left
    monkeypatch.setattr(run, "watched_invoices", locked)
    for _ in range(3):
        with pytest.raises(OperationalError):
            till.checker().run()
    assert till.explorers().allowance().left == before - 3
