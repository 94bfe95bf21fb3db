"""`btcpay sandbox --once`: a shop for one run of somebody's tests."""

import json
import signal
import subprocess
import sys

import requests
from builders import clean_environ, until
from playground import children_of, is_alive

ONCE = [sys.executable, "-P", "-m", "btcpay", "sandbox", "--once"]
# The tests of a shop, with nothing but Python; docs/developers/sandbox.md does it with curl.
A_SHOPS_TESTS = """
import json, os, sys, time
from urllib.parse import urlencode
from urllib.request import Request, urlopen
url, bench = os.environ["BTCPAY_URL"], os.environ["BTCPAY_SANDBOX_URL"]
headers = {"Authorization": "Bearer " + os.environ["BTCPAY_KEY"], "Accept": "application/json"}
def ask(url, data=None, **more):
    return json.load(urlopen(Request(url, data, headers | more)))
def press(button, **fields):
    return ask(f"{bench}/sandbox/{button}", urlencode(fields).encode())
order = {"Content-Type": "application/json"}
invoice = ask(f"{url}/api/v1/invoices", b'{"amount_usd": 25}', **order)
press("pay", invoice=invoice["id"])
press("mine")
while ask(f"{url}/api/v1/invoices/{invoice['id']}")["status"] != "paid":
    time.sleep(0.2)
print("paid", invoice["pay_url"].startswith(url), len(sys.argv))
sys.exit(7)
"""


def started(*words, **how):
    environ = clean_environ() | {"TMPDIR": str(how.pop("folder"))}
    return subprocess.Popen([*ONCE, *words], env=environ, text=True, **how)


def test_a_command_finds_a_shop_of_its_own_and_its_status_is_ours(tmp_path):
    words = ("--", sys.executable, "-c", A_SHOPS_TESTS, "--once")
    process = started(*words, folder=tmp_path, cwd=tmp_path, stdout=subprocess.PIPE)
    said, _ = process.communicate(timeout=120)
    assert (process.returncode, said) == (7, "paid True 2\n")
    assert list(tmp_path.iterdir()) == []


SAYS_WHERE = """
import json, os, time
print(json.dumps(dict(os.environ)), flush=True)
time.sleep(600)
"""


def test_its_btcpay_is_this_shops_and_a_signal_ends_all(tmp_path):
    process = started(
        "--", sys.executable, "-c", SAYS_WHERE, folder=tmp_path, stdout=subprocess.PIPE
    )
    environ = json.loads(process.stdout.readline())
    url, family = environ["BTCPAY_URL"], children_of(process.pid)
    assert requests.get(f"{url}/healthz", timeout=60).ok
    bench = environ["BTCPAY_SANDBOX_URL"]
    assert requests.get(f"{bench}/sandbox/state", timeout=60).json()["height"] == 200
    keyed = {"Authorization": f"Bearer {environ['BTCPAY_KEY']}"}
    listed = requests.get(f"{url}/api/v1/invoices", headers=keyed, timeout=60)
    assert listed.json()["data"] == []

    def btcpay(*words):
        line = [sys.executable, "-P", "-m", "btcpay", *words]
        return subprocess.check_output(line, env=environ, text=True)

    assert "whsec_" in btcpay("webhook", "add", "demo", "http://127.0.0.1:9/")
    plugin = ("--for", "woocommerce", "--shop", "http://127.0.0.1:9")
    shown, _, key = btcpay("key", "issue", "demo", *plugin).split()
    token = {"Authorization": f"token {key}"}
    assert shown == url
    assert requests.get(f"{url}/api/v1/api-keys/current", headers=token, timeout=60).ok
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    until(lambda: not any(map(is_alive, family)), "every process to end")
    assert list(tmp_path.iterdir()) == []
