"""`blocktill sandbox --once`: a shop for one run of somebody's tests."""

import json
import os
import signal
import subprocess
import sys

import pytest
import requests

from tests.support.builders import clean_environ, until
from tests.support.playground import children_of, is_alive

ONCE = [sys.executable, "-P", "-m", "btcpay", "sandbox", "--once"]
# The tests of a shop, with nothing but Python; docs/developers/sandbox.md does it with curl.
A_SHOPS_TESTS = """
import json, os, sys, time
from urllib.parse import urlencode
from urllib.request import Request, urlopen
url, bench = os.environ["BLOCKTILL_URL"], os.environ["BLOCKTILL_SANDBOX_URL"]
headers = {"Authorization": "Bearer " + os.environ["BLOCKTILL_KEY"], "Accept": "application/json"}
def ask(url, data=None, **more):
    return json.load(urlopen(Request(url, data, headers | more)))
def press(button, **fields):
    return ask(f"{bench}/sandbox/{button}", urlencode(fields).encode())
order = {"Content-Type": "application/json"}
invoice = ask(f"{url}/api/v1/invoices", b'{"amount_usd": 25}', **order)
press("pay", invoice=invoice["id"])
press("mine")
while ask(f"{url}/api/v1/invoices/{invoice['id']}")["status"] != "paid":
    time.sleep(0.6)  # a key may read 120 times a minute
print("paid", invoice["pay_url"].startswith(url), len(sys.argv))
sys.exit(7)
"""


def started(*words, **how):
    environ = clean_environ() | {"TMPDIR": str(how.pop("folder"))}
    return subprocess.Popen([*ONCE, *words], env=environ, text=True, **how)


def test_a_command_finds_a_shop_of_its_own_and_its_status_is_ours(tmp_path):
    words = ("--", sys.executable, "-c", A_SHOPS_TESTS, "--once")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = started(*words, folder=tmp_path, cwd=tmp_path, **pipes)
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, said, errors) == (7, "paid True 2\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["its input is closed", "a signal"])
def test_without_a_command_it_says_where_it_is_and_lasts_until_the_end(
    tmp_path, ending
):
    asked = subprocess.PIPE if ending == "its input is closed" else subprocess.DEVNULL
    process = started(folder=tmp_path, stdin=asked, stdout=subprocess.PIPE)
    shop = json.loads(process.stdout.readline())
    family = children_of(process.pid)
    assert requests.get(f"{shop['url']}/healthz", timeout=60).ok
    assert (
        requests.get(f"{shop['sandbox_url']}/sandbox/state", timeout=60).json()[
            "height"
        ]
        == 200
    )
    keyed = {"Authorization": f"Bearer {shop['key']}"}
    listed = requests.get(f"{shop['url']}/api/v1/invoices", headers=keyed, timeout=60)
    assert listed.json()["data"] == []

    def blocktill(*words):
        line = [sys.executable, "-P", "-m", "btcpay", *words]
        return subprocess.check_output(
            line, env=os.environ | shop["environ"], text=True
        )

    assert "whsec_" in blocktill(
        "webhook", "add", shop["merchant"], "http://127.0.0.1:9/"
    )
    plugin = ("--for", "woocommerce", "--shop", "http://127.0.0.1:9")
    url, _, key = blocktill("key", "issue", shop["merchant"], *plugin).split()
    token = {"Authorization": f"token {key}"}
    assert url == shop["url"]
    assert requests.get(f"{url}/api/v1/api-keys/current", headers=token, timeout=60).ok
    if ending == "a signal":
        process.send_signal(signal.SIGTERM)
    else:
        process.stdin.close()
    assert process.wait(60) == 0
    until(lambda: not any(map(is_alive, family)), "every process to end")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_ends_the_command_too(tmp_path):
    words = ("--", "sh", "-c", "echo $$; exec sleep 600")
    process = started(*words, folder=tmp_path, stdout=subprocess.PIPE)
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert not is_alive(pid)
