"""`blocktill sandbox`: what it prints, its processes and folders, and `doctor` beside it."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from btcpay.parts.sandbox_command.config import command_line
from storage.versions import migrate
from tests.support.builders import clean_environ, until
from tests.support.databases import raw
from tests.support.forge import forge
from tests.support.playground import children_of, is_alive, start_playground
from tests.support.ports import free_port
from tests.support.processes import command_of

INTRODUCTION = {
    "the key": r"(?m)^write key +sk_test_\w{40,}$",
    "the curl line": r"(?m)^curl http://127\.0\.0\.1:\d+/api/v1/invoices .*\"amount_usd\": 25\}'$",
    "an invoice's page": r"(?m)^http://127\.0\.0\.1:\d+/pay/inv_\w{24}$",
    "a payment link": r"http://127\.0\.0\.1:\d+/link/lnk_\w{24}\n",
    "the workbench": r"(?m)^http://127\.0\.0\.1:\d+/$",
    "the log": r"(?m)^log .*/sandbox/sandbox\.log, webhooks\.log \(emptied at each start\)$",
    "how to start over": r"(?m)^start over +remove .*/sandbox and .*/blocktill\.db, ",
    "the merchant's pages": r"(?m)^shop's pages +http://127\.0\.0\.1:\d+/merchant/login/\w{24} "
    r"\(once, within ten minutes\)$",
}


def test_a_small_terminal_keeps_key_curl_line_and_links_in_sight(playground):
    shown = playground.introduction
    assert [
        what for what, pattern in INTRODUCTION.items() if not re.search(pattern, shown)
    ] == []
    assert len(shown.splitlines()) <= 18  # with lines that wrap, 24 rows
    for state in ("down", "up"):  # what is pressed at the workbench is shown there
        playground.press("explorer", state=state)
    assert playground.talk.read_text() == ""
    folder = playground.talk.parent / "sandbox"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "sandbox.log").stat().st_mode & 0o777 == 0o600


def test_the_tip_is_known_before_its_first_invoice(playground):
    with raw(playground.environ["BLOCKTILL_DATABASE_URL"]) as connection:
        rows = connection.execute(
            "SELECT above_height FROM invoice ORDER BY seq"
        ).fetchall()
    assert rows[0][0] is not None


def test_the_doctor_beside_it_is_green_by_the_line_that_is_printed(playground):
    playground.wait_for_status(playground.press("invoice", amount_usd=1), "open")
    line = re.search("is all well\\?  (.*)", playground.introduction)[1]
    findings: list[dict] = []

    def is_green():  # once the first check has ended
        words = ["sh", "-c", f"{line} --json"]
        ended = subprocess.run(
            words, env=clean_environ(), capture_output=True, text=True
        )
        findings[:] = json.loads(ended.stdout)
        return all(finding["colour"] == "green" for finding in findings)

    until(is_green, "green findings alone", every_s=0.5)
    assert {"file modes", "check", "price"} <= {finding["name"] for finding in findings}


@pytest.mark.slow
def test_in_one_folder_it_is_one_shop(tmp_path):
    first = start_playground(tmp_path)
    first.press("mine")
    invoice = first.post("/invoices", {"amount_usd": 25})
    first.pay(invoice)
    first.press("mine")
    # so that the database has these blocks
    paid = first.wait_for_status(invoice, "paid")
    family = children_of(first.process.pid)
    assert len(family) >= 4  # chain, gunicorn and its worker, check
    assert first.process.pid not in {os.getsid(each) for each in family}
    assert first.stop(signal.SIGINT) == 0
    until(lambda: not any(map(is_alive, family)), "every process to end")

    second = start_playground(
        tmp_path, *(urlsplit(url).port for url in (first.service, first.chain))
    )
    # With the same demo pages, so that no address is wasted.
    same = [(each.key, each.pay_url, each.link) for each in (first, second)]
    assert same[0] == same[1]
    assert second.get(f"/invoices/{invoice['id']}") == paid
    assert len(second.get("/payments")["data"]) == 1
    (endpoint,) = json.loads(second.blocktill("webhook", "list", "--json").stdout)
    assert endpoint["merchant"] == "demo"  # one, at each start

    # A part that ends by itself is named, with the end of the log.
    second.press("explorer", state="down")
    log = tmp_path / "sandbox/sandbox.log"
    until(lambda: "HTTP 503" in log.read_text(), "a check to fail")
    children = children_of(second.process.pid)
    (check,) = (pid for pid in children if "--watch" in command_of(pid))
    os.kill(check, signal.SIGKILL)
    assert second.process.wait(30) == 128 + signal.SIGKILL
    talk = second.talk.read_text()
    assert "blocktill: the check was killed (signal 9);" in talk and "HTTP 503" in talk


def test_a_taken_port_any_network_but_regtest_and_what_cannot_be_run_are_refused(
    tmp_path,
):
    environ = {"BLOCKTILL_DATABASE_URL": f"sqlite:///{tmp_path}/blocktill.db"}
    words = ["sandbox", "--state", str(tmp_path)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        at = {"BLOCKTILL_BASE_URL": f"http://127.0.0.1:{free_port()}"}
        refused = forge().run(environ | at, [*words, "--port", str(port)])
    assert refused.status == 1 and f"127.0.0.1:{port} is taken" in refused.errors
    refused = forge().run(environ | {"BLOCKTILL_NETWORK": "mainnet"}, words)
    assert refused.status == 1 and "regtest only" in refused.errors
    refused = forge().run(environ, ["sandbox", "--once", "--", "no-such-program"])
    assert refused.status == 1 and "no-such-program cannot be run" in refused.errors
    refused = forge().run(environ, ["sandbox", "--", "ls"])
    assert refused.status == 2 and "a command needs --once" in refused.errors


def test_what_stands_behind_two_dashes_is_not_looked_at(blocktill):
    program = "import sys; sys.exit(sys.argv[1:] != ['--a', '', '--b='])"
    blocktill.run(
        "sandbox", "--once", "--", sys.executable, "-c", program, "--a", "", "--b="
    )


def test_what_another_terminal_needs_is_quoted_and_shows_no_password():
    usual = {"BLOCKTILL_EXPLORERS": "http://127.0.0.1:8001", "HOME": "/root"}
    assert command_line(".venv/bin/blocktill", usual) == ".venv/bin/blocktill"
    assert command_line("my shop/blocktill", usual) == "'my shop/blocktill'"
    url = "postgresql://shop:secret@127.0.0.1/shop"
    environ = {"BLOCKTILL_DATABASE_URL": url, "BLOCKTILL_CONFIRMATIONS": "1 3@1000"}
    found = command_line("/opt/blocktill/btcpay/__main__.py", environ)
    assert shlex.split(found) == [
        "BLOCKTILL_CONFIRMATIONS=1 3@1000",
        "BLOCKTILL_DATABASE_URL=postgresql://***@127.0.0.1/shop",
        sys.executable,
        "-m",
        "btcpay",
    ]


def test_a_database_of_an_older_checkout_is_refused_with_how_to_start_over(tmp_path):
    path = tmp_path / "blocktill.db"
    migrate(f"sqlite:///{path}", "regtest")
    with raw(f"sqlite:///{path}") as connection:
        connection.execute("ALTER TABLE schema_step DROP COLUMN sha256")
    environ = {
        "BLOCKTILL_DATABASE_URL": f"sqlite:///{path}",
        "BLOCKTILL_BASE_URL": f"http://127.0.0.1:{free_port()}",
    }
    words = ["sandbox", "--state", str(tmp_path / "state"), "--port", str(free_port())]
    refused = forge().run(environ, words)
    assert (
        refused.status == 1
        and "is of an older version of this program" in refused.errors
    )
    assert f"start over: remove {tmp_path}/state and {path}" in refused.errors
