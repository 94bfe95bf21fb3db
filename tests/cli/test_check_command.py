"""The shipped command line as processes: what cron and the merchant type, and what comes back."""

import json
import signal
import threading

from btcpay.chain.progress import hours_to_read
from btcpay.check.report import Report
from btcpay.cli.check.summary import summary_lines
from tests.support.builders import until
from tests.support.fake_esplora import FakeEsplora, Terminal


def checked_at(till, invoice):
    sql = f"SELECT checked_ms FROM invoice WHERE id = '{invoice['id']}'"  # noqa: S608
    return till.shop.sql(sql).fetchone()[0]


def test_check_settles_what_is_paid_and_says_so(till, blocktill):
    invoice = till.shop.invoice()
    txid = till.pay(invoice)
    till.mine()
    output, _ = blocktill.run("check")
    assert (
        "in the mempool: 0, calls: " in output and f"{invoice['id']} is paid" in output
    )
    assert till.look(invoice)["tx_hash"] == txid
    again = blocktill.json("check")
    assert (again["blocks_read"], again["failed"], again["changed"]) == (0, [], {})
    assert (again["calls"], again["blocks_behind"], again["bytes"]) == (1, 0, 64)
    till.mine()
    assert blocktill.json("check")["blocks_read"] == 1


def test_a_check_says_how_many_blocks_are_left_and_in_how_many_hours_they_are_read():
    for behind, behind_h, said in (
        (1, 1, "1 block is still to be read, which takes about an hour"),
        (1_008, 3, "1008 blocks are still to be read, which takes about 3 hours"),
    ):
        assert said in "\n".join(
            summary_lines(Report(blocks_behind=behind, hours_behind=behind_h))
        )
    assert [hours_to_read(blocks, 600) for blocks in (0, 1, 400, 401)] == [0, 1, 1, 2]


def test_check_of_one_invoice_looks_for_that_one_alone_and_always(till, blocktill):
    one = till.shop.invoice()
    two = till.shop.invoice()
    till.pay(one), till.pay(two)
    assert blocktill.json("check", "--invoice", one["id"])["looked_at"] == 1
    assert (till.kinds(one), till.kinds(two)) == (["seen"], [])
    blocktill.run("invoice", "cancel", "--force", one["id"])
    assert blocktill.json("check", "--invoice", one["id"])["looked_at"] == 1
    output, errors = blocktill.run("check", "--invoice", "inv_nothing", status=1)
    assert output == "" and "no invoice 'inv_nothing'" in errors


def test_a_word_that_is_no_text_is_wrong_use(blocktill):
    for words in (
        "invoice show \udcff",
        "check --invoice \udcff",
        "key issue shop --scope read --name a\udcff",
        "export labels --merchant \udcff",
    ):
        output, errors = blocktill.run(*words.split(), status=2)
        assert (
            output == ""
            and "\\udcff' is not UTF-8" in errors
            and "Traceback" not in errors
        )


def test_check_without_an_explorer_fails_and_names_the_doctor(till, blocktill):
    invoice = till.shop.invoice()
    till.sandbox.switches.explorer = "down"
    assert blocktill.json("check", "--invoice", invoice["id"], status=1)["chain_failed"]
    assert "`blocktill doctor`" in blocktill.run("check", status=1)[0]


def test_a_second_check_beside_a_first_does_nothing_and_says_so(till, blocktill):
    go_on = threading.Event()
    till.shop.invoice()
    till.check()

    def wait_for_the_second(_path):
        go_on.wait(60)

    with FakeEsplora() as esplora:
        blocktill.environ["BLOCKTILL_EXPLORERS"] = esplora.root
        esplora.instead = wait_for_the_second
        first = blocktill.start("check", "--json")
        until(lambda: esplora.asked, "the first check to ask")
        output, errors = blocktill.run("check")
        assert output == "" and "another check is running" in errors
        assert blocktill.json("check") == {"skipped": True}
        assert len(esplora.asked) == 1
        go_on.set()
        output, errors = first.communicate(timeout=60)
        assert (first.returncode, json.loads(output)["chain_failed"]) == (1, True), (
            errors
        )


def test_a_check_that_finds_somebody_waiting_looks_again_until_the_payment_is_seen(
    till, blocktill
):
    invoice = till.shop.invoice()
    till.check()
    till.open_page(invoice)
    first = blocktill.start("check", "--json")
    until(lambda: checked_at(till, invoice), "the first look")
    till.pay(invoice)
    output, errors = first.communicate(timeout=60)
    assert first.returncode == 0 and json.loads(output)["looked_at"] > 1, errors
    assert till.kinds(invoice) == ["seen"]


def test_a_check_that_shall_look_once_stays_for_nobody(till, blocktill):
    invoice = till.shop.invoice()
    till.check()
    till.open_page(invoice)
    assert blocktill.json("check", "--once")["looked_at"] == 1
    waited = till.shop.sql(f"SELECT asked_ms FROM invoice WHERE id = '{invoice['id']}'")  # noqa: S608
    assert waited.fetchone()[0], "the page still waits"
    for words in ("--watch 1 --once", "--watch 1 --invoice inv_1"):
        assert (
            "--watch goes neither with"
            in blocktill.run("check", *words.split(), status=2)[1]
        )


def test_a_watch_prints_what_has_changed_into_a_pipe_at_once(till):
    watch = Terminal(till).start("check", "--watch", "1")
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    try:
        assert any(line == f"{invoice['id']} is paid\n" for line in watch.stdout)
    finally:
        watch.send_signal(signal.SIGTERM)
        watch.communicate(timeout=60)


def test_invoice_list_shows_the_newest_first_and_filters_by_status(till, blocktill):
    old = till.shop.invoice()
    new = till.shop.invoice()
    blocktill.run("invoice", "cancel", old["id"])
    assert (
        "the invoice is canceled"
        in blocktill.run("invoice", "cancel", old["id"], status=1)[1]
    )
    assert [row["id"] for row in blocktill.json("invoice", "list")] == [
        new["id"],
        old["id"],
    ]
    listed = blocktill.json("invoice", "list", "--status", "canceled")
    assert [(row["id"], row["merchant"]) for row in listed] == [(old["id"], "shop")]
    lines = blocktill.run("invoice", "list", "--limit", "1")[0].splitlines()
    assert len(lines) == 2 and lines[1].startswith(new["id"])


def test_invoice_show_says_why_it_stands_where_it_stands_until_it_is_settled(
    till, blocktill
):
    invoice = till.shop.invoice(description="tea")
    txid = till.pay(invoice, 1_000)
    till.mine()
    blocktill.run("check")
    found = blocktill.json("invoice", "show", invoice["id"])
    missing = invoice["amount_sats"] - 1_000
    assert (
        found["standing"]["reason"]
        == f"open: {missing} satoshis are missing, 1000 came"
    )
    (payment,) = found["payments"]
    assert payment["tx_hash"] == txid
    assert payment["created_at"] == found["outputs"][0]["block_time_at"]
    assert [(o["txid"], o["amount_sats"]) for o in found["outputs"]] == [(txid, 1_000)]
    assert [event["kind"] for event in found["events"]] == ["seen", "payment"]
    assert "tea" in blocktill.run("invoice", "show", invoice["id"])[0]
    blocktill.run("invoice", "settle", invoice["id"], "--reason", "a friend")
    settled = blocktill.json("invoice", "show", invoice["id"])["invoice"]
    assert (settled["tx_hash"], settled["settled_reason"]) == (txid, "a friend")


def test_a_link_is_deactivated_and_activated_again(till, blocktill):
    link = till.shop.link(title="tip jar")
    page = f"/link/{link['id']}"
    blocktill.run("link", "deactivate", link["id"])
    assert till.shop.get(f"/payment-links/{link['id']}").json["status"] == "inactive"
    assert till.shop.client.get(page).status_code == 410
    blocktill.run("link", "activate", link["id"])
    assert till.shop.client.get(page).status_code == 200


WRONG = {
    "BLOCKTILL_NETWORK": "moon",
    "BLOCKTILL_CONFIRMATIONS": "0",
    "BLOCKTILL_BASE_URL": "pay.example",
}


def test_wrong_settings_stop_every_command_naming_each_variable(blocktill):
    for words in ("check", "migrate", "merchant list", "invoice list", "serve"):
        output, errors = blocktill.run(*words.split(), status=2, **WRONG)
        assert output == "" and "Traceback" not in errors, words
        assert len(errors.splitlines()) == 3 and all(
            name in errors for name in WRONG
        ), words


def test_help_and_version_work_with_wrong_settings(blocktill):
    for words in ("--help", "-h", "--version", "check --help", "invoice settle --help"):
        output, errors = blocktill.run(*words.split(), **WRONG)
        assert output and errors == "", words
