"""What a newcomer has before him: the sandbox's screen, its log, and `doctor` beside it."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from builders import clean_environ, until
from playground import children_of, is_alive, start_playground
from ports import free_port
from terminal import CTRL_C, InTerminal, Screen

from btcpay.cli.sandbox.children import Children
from btcpay.cli.sandbox.place import command_line
from btcpay.cli.sandbox.status import fitting
from btcpay.values.errors import CommandError

ROWS, COLUMNS = 24, 80
UPSIDE_DOWN = ("down", "up")


class Newcomer:
    """One who has typed `btcpay sandbox` in an empty folder, in a small terminal."""

    def __init__(self, folder: Path, columns: int = COLUMNS) -> None:
        self.folder = folder
        service_port, chain_port = free_port(), free_port()
        self.service, self.chain = (f"http://127.0.0.1:{p}" for p in (service_port, chain_port))
        environ = clean_environ(BTCPAY_METRICS_BIND="", BTCPAY_BASE_URL=self.service)
        words = [sys.executable, "-m", "btcpay", "sandbox", "--port", str(chain_port)]
        self.terminal = InTerminal(words, folder, environ, ROWS, columns)

    @property
    def screen(self) -> Screen:
        return self.terminal.screen

    @property
    def status(self) -> str:
        return self.screen.lines[-1]

    def sees(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.screen.text)

    def waits_for(self, pattern: str) -> None:
        """Until the status line has it."""
        until(
            lambda: self.terminal.process.poll() is not None or re.search(pattern, self.status),
            f"{pattern} in the status line",
        )
        assert self.terminal.process.poll() is None, self.screen.text

    def press(self, button: str, **fields: Any) -> None:
        headers = {"Accept": "application/json"}
        url = f"{self.chain}/sandbox/{button}"
        assert requests.post(url, data=fields, headers=headers, timeout=10).ok


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    (tmp_path / "var").mkdir()
    (tmp_path / "var").chmod(0o755)  # as 0.1.0 left it
    (tmp_path / "var/btcpay.db").touch(mode=0o600)
    came = Newcomer(tmp_path)
    try:
        came.waits_for("checked [0-9]+ s ago")
        yield came
    finally:
        if came.terminal.process.poll() is None:
            came.terminal.end(signal.SIGKILL)


WHAT_STAYS = {
    "the key": r"(?m)^write key +sk_test_\w{40,}$",
    "the curl line": r"(?m)^curl http://127\.0\.0\.1:\d+/api/v1/invoices .*\"amount_usd\": 25\}'$",
    "an invoice's page": r"(?m)^http://127\.0\.0\.1:\d+/pay/inv_\w{24}$",
    "a payment link": r"http://127\.0\.0\.1:\d+/link/lnk_\w{24}\n",
    "the sandbox's page": r"(?m)^http://127\.0\.0\.1:\d+/$",
    "the name of the log": r"(?m)^log +var/sandbox/sandbox\.log, webhooks\.log "
    r"\(emptied at each start\)$",
    "how to begin anew": r"(?m)^begin anew +`rm -r var`",
    "the merchant's pages": r"(?m)^shop's pages +http://127\.0\.0\.1:\d+/merchant/login/\w{24}$",
}


def missing(newcomer: Newcomer) -> list[str]:
    return [what for what, pattern in WHAT_STAYS.items() if not newcomer.sees(pattern)]


def test_key_curl_line_and_links_stay_in_sight_and_one_line_below_changes_in_its_place(newcomer):
    assert missing(newcomer) == []
    rows = len(newcomer.screen.lines)
    assert rows <= ROWS
    for height in range(201, 206):
        newcomer.press("mine")
        newcomer.waits_for(f"block {height}, 0 waiting")
    newcomer.press("price", state="down")
    newcomer.waits_for("price DOWN")
    newcomer.press("explorer", state="down")
    newcomer.waits_for("explorer DOWN")
    log = newcomer.folder / "var/sandbox/sandbox.log"
    until(lambda: log.read_text().count("ERROR") >= 3, "three checks to fail")
    newcomer.waits_for(r"^check FAILED \d+ s ago, see var/sandbox/sandbox\.log, explorer DOWN, ")
    newcomer.press("explorer", state="lies")
    newcomer.waits_for("explorer LIES")
    newcomer.press("explorer", state="up")
    newcomer.press("price", usd="61000", state="up")
    newcomer.waits_for(r"^checked [01] s ago, explorer up, price 61000, block 205, 0 waiting")
    assert missing(newcomer) == []
    assert len(newcomer.screen.lines) == rows
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_doctor_beside_it_is_green_by_the_line_that_the_screen_names(newcomer):
    line = newcomer.sees("is all well\\?  (.*)")[1]
    environ = clean_environ()
    words = ["sh", "-c", f"{line} --json"]
    ended = subprocess.run(words, cwd=newcomer.folder, env=environ, capture_output=True, text=True)
    findings = json.loads(ended.stdout)
    assert [finding for finding in findings if finding["colour"] != "green"] == []
    assert {"file modes", "check", "price"} <= {finding["name"] for finding in findings}


def test_the_link_that_is_printed_logs_the_merchant_in(newcomer):
    link = newcomer.sees("shop's pages +(.*)")[1]
    with requests.Session() as session:
        page = session.post(link, headers={"Sec-Fetch-Site": "same-origin"}, timeout=20)
        assert page.status_code == 200 and page.url.endswith("/merchant")


def test_ctrl_c_ends_every_process_and_leaves_what_is_above_the_status_line(newcomer):
    pid = newcomer.terminal.process.pid
    family = children_of(pid)
    assert len(family) >= 4  # chain, gunicorn and its worker, check
    assert pid not in {os.getsid(each) for each in family}
    newcomer.terminal.type("ls")
    newcomer.terminal.type(CTRL_C)
    assert newcomer.terminal.wait() == 0
    until(lambda: not any(map(is_alive, family)), "every process to end")
    assert missing(newcomer) == []
    assert newcomer.status == ""


def test_what_is_typed_meanwhile_is_not_shown(newcomer):
    assert not newcomer.terminal.echoes()
    newcomer.terminal.type("what is this?\n")
    newcomer.press("mine")
    newcomer.waits_for("block 201, 0 waiting")
    assert not newcomer.sees("what is this")


def test_a_chain_that_was_removed_alone_is_told_with_what_begins_anew(newcomer):
    newcomer.press("mine")
    newcomer.waits_for("block 201, 0 waiting")
    newcomer.waits_for("checked 0 s ago")
    newcomer.waits_for("checked [1-9] s ago")
    newcomer.waits_for("checked 0 s ago")
    newcomer.terminal.end(signal.SIGTERM)
    shutil.rmtree(newcomer.folder / "var/sandbox")
    again = Newcomer(newcomer.folder)
    assert again.terminal.wait() == 1
    assert again.sees(r"the chain in var/sandbox is older than")
    assert again.sees(r"`rm -r var` begins anew")


@pytest.mark.parametrize(
    ("columns", "shown"),
    [(80, "checked 1 s ago, block 200"), (26, "checked 1 s ago, block 200")]
    + [(25, "checked 1 s ago"), (7, "checked")],
)
def test_a_narrow_terminal_shows_what_fits(columns, shown):
    assert fitting(["checked 1 s ago", "block 200"], columns) == shown


STUBBORN = """
import os, pathlib, signal, subprocess, sys, time
orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
{}
pathlib.Path("pids").write_text(f"{{os.getpid()}} {{orphan.pid}}\\n")
time.sleep(60)
"""


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("", id="that leaves a process behind"),
        pytest.param("signal.signal(signal.SIGTERM, signal.SIG_IGN)", id="that does not end"),
    ],
)
def test_nothing_survives_of_a_child(tmp_path, how):
    (tmp_path / "stubborn.py").write_text(STUBBORN.format(how))
    environ = clean_environ(PYTHONPATH=str(tmp_path))
    with (
        contextlib.chdir(tmp_path),
        Children(environ, tmp_path / "log", patience_s=0.2) as children,
    ):
        children.start("check", "stubborn")
        file = tmp_path / "pids"
        until(lambda: file.exists() and file.read_text().endswith("\n"), "its processes")
    pids = [int(pid) for pid in file.read_text().split()]
    until(lambda: not any(map(is_alive, pids)), "both to end")


def test_a_child_that_was_killed_and_had_logged_nothing_is_told_so(tmp_path):
    (tmp_path / "silent.py").write_text("import os; os.kill(os.getpid(), 9)")
    told = "the check was killed (signal 9) and had logged nothing; `btcpay sandbox` starts again"
    environ = clean_environ(PYTHONPATH=str(tmp_path))
    with Children(environ, tmp_path / "log") as children:
        children.start("check", "silent")
        with pytest.raises(CommandError, match=re.escape(told)):
            until(children.require_all, "its end")


def test_with_the_usual_ports_another_terminal_needs_no_variables():
    usual = {"BTCPAY_EXPLORERS": "http://127.0.0.1:8001", "HOME": "/root"}
    assert command_line(".venv/bin/btcpay", usual) == ".venv/bin/btcpay"


def test_what_another_terminal_needs_is_quoted_and_tells_no_password():
    url = "postgresql://shop:secret@127.0.0.1/shop"
    environ = {"BTCPAY_DATABASE_URL": url, "BTCPAY_CONFIRMATIONS": "1 3@1000"}
    found = command_line("/opt/btcpay/btcpay/__main__.py", environ)
    assert shlex.split(found) == [
        "BTCPAY_CONFIRMATIONS=1 3@1000",
        "BTCPAY_DATABASE_URL=postgresql://***@127.0.0.1/shop",
        sys.executable,
        "-m",
        "btcpay",
    ]


def test_a_folder_that_holds_something_else_is_left_as_it_is(tmp_path):
    (tmp_path / "letters").touch()
    (tmp_path / "btcpay.db").touch(mode=0o600)
    tmp_path.chmod(0o755)
    playground = start_playground(tmp_path)
    assert playground.stop() == 0
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "sandbox").stat().st_mode & 0o777 == 0o700


def test_without_a_terminal_the_talk_is_a_line_for_each_switch(tmp_path):
    playground = start_playground(tmp_path)
    try:
        playground.press("mine")
        for button in ("explorer", "price"):
            for state in UPSIDE_DOWN:
                playground.press(button, state=state)
                line = f"the {button} is {state}\n"
                until(lambda line=line: line in playground.talk.read_text(), line)
    finally:
        assert playground.stop(signal.SIGHUP) == 0  # as when the terminal's window is closed
    told = [line for line in playground.talk.read_text().splitlines() if " is " in line]
    assert told == [f"the {what} is {how}" for what in ("explorer", "price") for how in UPSIDE_DOWN]
    assert "ERROR" not in playground.talk.read_text() and "%" not in playground.talk.read_text()


def test_the_next_start_shows_the_same_pages_so_that_no_address_is_wasted(tmp_path):
    shown = []
    for _ in range(2):
        playground = start_playground(tmp_path)
        shown.append((playground.pay_url.rpartition("/")[2], playground.link.rpartition("/")[2]))
        playground.stop()
    assert shown[0] == shown[1]


def test_a_part_that_ends_by_itself_is_told_with_the_end_of_the_log(tmp_path):
    playground = start_playground(tmp_path)
    (check,) = [
        pid
        for pid in Path(f"/proc/{playground.process.pid}/task/{playground.process.pid}/children")
        .read_text()
        .split()
        if b"check" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    ]
    playground.press("explorer", state="down")
    log = tmp_path / "sandbox/sandbox.log"
    until(lambda: "HTTP 503" in log.read_text(), "a check to fail")
    subprocess.run(["kill", "-9", check], check=True)
    assert playground.process.wait(30) == 1
    talk = playground.talk.read_text()
    assert "btcpay: the check was killed (signal 9);" in talk and "HTTP 503" in talk
