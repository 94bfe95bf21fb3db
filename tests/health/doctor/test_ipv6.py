"""The doctor tells a machine whose IPv6 swallows what it is sent from one where it answers."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys

import pytest

from tests.support.browser import lack
from tests.support.builders import clean_environ
from tests.support.paths import PROJECT

pytestmark = pytest.mark.slow

# A host with both addresses, of which that of IPv6 swallows or accepts.
SCRIPT = """
import sys
from pathlib import Path
from btcpay.health.doctor.addresses import ipv6
from btcpay.health.doctor.shop import Shop
from btcpay.settings.settings import read
from btcpay.values.times import utc_now
environ = {
    "BLOCKTILL_NETWORK": "regtest",
    "BLOCKTILL_EXPLORERS": f"http://both.example:{sys.argv[1]}",
    "BLOCKTILL_PRICE_SOURCES": f"http://both.example:{sys.argv[1]}/#/usd",
    "BLOCKTILL_DATABASE_URL": "sqlite:////nowhere/blocktill.db",
    "BLOCKTILL_BASE_URL": "http://127.0.0.1:8000",
}
for finding in ipv6(Shop(read(environ), environ, utc_now, lambda _folder: 0)):
    print(finding.colour, finding.sentence)
"""

YELLOW = "yellow IPv6 does not answer, IPv4 does: each new connection to both.example"
CASES = {
    "its IPv6 swallows everything": (["::1", "127.0.0.1"], True, YELLOW),
    "both answer": (["::1", "127.0.0.1"], False, ""),
    "a host of IPv4 alone": (["127.0.0.1"], True, ""),
}


def fill_queue(stack, port):
    """From then on what is sent to connect is swallowed."""
    for _ in range(20):
        client = stack.enter_context(socket.socket(socket.AF_INET6))
        client.settimeout(0.5)
        try:
            client.connect(("::1", port))
        except TimeoutError:
            return
    pytest.fail("its queue has no end")


@pytest.mark.parametrize("case", CASES)
def test_the_doctor_says_that_ipv6_does_not_answer(tmp_path, case):
    places, swallows, said = CASES[case]
    unshare = shutil.which("unshare")
    if not unshare:
        lack("needs unshare")
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{place} both.example\n" for place in places))
    enter = 'mount --bind "$1" /etc/hosts; shift; exec "$@"'
    words = [unshare, "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    words += ["sh", "-ec", enter, "sh", str(hosts), sys.executable, "-c", SCRIPT]
    with contextlib.ExitStack() as stack:
        by_4 = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = by_4.getsockname()[1]
        by_6 = stack.enter_context(socket.socket(socket.AF_INET6))
        by_6.bind(("::1", port))
        by_6.listen(0 if swallows else 100)
        if swallows:
            fill_queue(stack, port)
        environ = clean_environ(PYTHONPATH=str(PROJECT))
        ended = subprocess.run(
            [*words, str(port)], env=environ, capture_output=True, text=True
        )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(said) and bool(ended.stdout) == bool(said), (
        ended.stdout
    )
