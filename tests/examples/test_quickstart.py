"""docs/developers/quickstart.md: each program as it is copied, until its invoice is paid.

Also the line of docs/developers/integration.md that makes an order by the plug-in interface.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.builders import clean_environ
from tests.support.paths import GONE, PROJECT
from tests.support.programs import tool

pytestmark = pytest.mark.slow

TEXT = (PROJECT / "docs/developers/quickstart.md").read_text(encoding="utf-8")
PROGRAMS = {"python": "first.py", "js": "first.mjs", "php": "first.php"}


def blocks(language, title=""):
    """The blocks in a language, of one step or of the whole page."""
    text = TEXT
    if title:
        text = re.search(rf"^## \d\. {title}\n(.*?)^## ", TEXT, re.M | re.S)[1]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


class SecondTerminal:
    """A shell in the folder where the sandbox was started, as step 2 makes it."""

    def __init__(self, playground):
        self.folder = playground.talk.parent
        (self.folder / "var").mkdir(exist_ok=True)
        link = self.folder / "var/sandbox"
        if not link.exists():
            link.symlink_to(self.folder / "sandbox")
        self._ports = {
            "http://127.0.0.1:8000": playground.service,
            "http://127.0.0.1:8001": playground.chain,
        }
        (block,) = blocks("sh", "Open a second terminal")
        change_folder, self._variables = block.split("\n", 1)
        assert change_folder == "cd blocktill"

    def run(self, block):
        """What a block prints. It ends at the first line that fails."""
        lines = self._variables + block
        for written, living in self._ports.items():
            lines = lines.replace(written, living)
        environ = clean_environ(
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            BLOCKTILL_DATABASE_URL=f"sqlite:///{self.folder}/blocktill.db",
        )
        return subprocess.check_output(
            ["bash", "-euc", lines],
            cwd=self.folder,
            env=environ,
            text=True,
            timeout=120,
        )

    def environ(self):
        lines = self.run("env").splitlines()
        return dict(line.split("=", 1) for line in lines if line[:10] == "BLOCKTILL_")

    def pay(self, pay_url):
        """Presses the buttons by hand, as step 4 says."""
        (block,) = blocks("sh", "Pay it")
        self.run(block.replace("inv_...", pay_url.rpartition("/pay/")[2]))


@pytest.fixture
def terminal(playground):
    return SecondTerminal(playground)


@pytest.mark.parametrize("language", PROGRAMS)
def test_each_program_makes_an_invoice_and_prints_that_it_is_paid(
    language, terminal, tmp_path
):
    (program,) = blocks(language)
    name = PROGRAMS[language]
    (tmp_path / name).write_text(program, encoding="utf-8")
    (runner,) = re.findall(rf"run `(\w+) {name}`", TEXT)
    process = subprocess.Popen(
        [tool(runner), tmp_path / name],
        env=clean_environ(**terminal.environ()),
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        terminal.pay(process.stdout.readline().strip())
        assert process.communicate(timeout=120) == ("paid\n", None)
    assert process.returncode == 0


def test_the_curl_lines_make_an_invoice_and_show_that_it_is_paid(playground, terminal):
    create, newest = blocks("sh", "Make an invoice")
    pay_url = re.search(r'"pay_url":"([^"]+)"', terminal.run(create))[1]
    terminal.pay(pay_url)
    playground.wait_for_status({"pay_url": pay_url, "id": pay_url[-28:]}, "paid")
    shown = terminal.run(newest)
    assert pay_url in shown and '"status":"paid"' in shown


@pytest.mark.skipif("greenfield" in GONE, reason="the part was deleted")
def test_the_line_for_an_order_in_euros_makes_one_that_is_found_by_its_number(
    playground, terminal
):
    text = (PROJECT / "docs/developers/integration.md").read_text(encoding="utf-8")
    (issue,) = re.findall(r"`(blocktill key issue [^`]+)`", text)
    (create,) = re.findall(r"^\$ (curl .+?)^```", text, re.M | re.S)
    (path,) = re.findall(r"`GET \.\.\.(/\S+)`", text)
    find = 'curl -s -H "Authorization: token $PLUGIN_KEY" '
    find += f"'{playground.api}/stores/'$STORE'{path}'"
    lines = [f"set -- $({issue})", "STORE=$2 PLUGIN_KEY=$3", create, find]
    made, listed = map(json.loads, terminal.run("\n".join(lines)).splitlines())
    assert made["checkoutLink"].startswith(f"{playground.service}/pay/")
    assert [order["id"] for order in listed] == [made["id"]]
