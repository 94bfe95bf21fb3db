"""What a run's questions hold at most under hostile explorers: the peak of a real process."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from builders import clean_environ
from fake_esplora import FakeEsplora, Json, Reply, endless_head, filled, say, tx_of
from paths import PROJECT

ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
SCRIPT = "0014751e76e8199196d454941c45d1b3a323f1433bd6"
MOST_MB = 100  # some 45 of them are Python and its libraries
# Asks what a check asks, each time as if nothing were known of the explorers, and of an address
# four at once; tells what it was answered, and what the kernel knows of the process.
ASKING = """
import json, pathlib, sys
from concurrent.futures import ThreadPoolExecutor
from btcpay.http import http_client
from btcpay.bitcoin.header import parse_header
from btcpay.values.errors import ProofFailed
from btcpay.chain.explorers.esplora import Esplora
from btcpay.chain.explorers.pool import Explorers
from btcpay.values.networks import NETWORKS

address, script, *roots = sys.argv[1:]
session = http_client.Session(4)

def explorers():
    return Explorers(NETWORKS["regtest"], roots, session, pause=lambda _: None)

def read(one):
    raw = one.raw_block(tip)
    if parse_header(raw[:80]).hash != tip:
        raise ProofFailed("another block")
    return raw.hex()

def seen(_):
    mempool, _ = together.waiting(address, bytes.fromhex(script))
    return len(mempool.outputs)

tip = explorers().ask(Esplora.tip_hash)
found = {
    "headers": [header.height for header in explorers().ask(lambda one: one.headers(None))],
    "height": explorers().ask(Esplora.tip_height),
    "header": explorers().ask(lambda one: one.header(tip)).hex(),
    "block": explorers().ask(read),
    "is_used": explorers().is_used(address),
}
together = explorers()
with ThreadPoolExecutor(4) as threads:
    found["waiting"] = list(threads.map(seen, range(8)))
print(json.dumps(found))
status = pathlib.Path("/proc/self/status").read_text()
print(status.split("VmHWM:")[1].split()[0])
"""


def streaming(start: bytes, piece: bytes, chunked: bool = False) -> Reply:
    """Sends pieces without end, until the client has had enough."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        head = "Transfer-Encoding: chunked\r\n" if chunked else "Connection: close\r\n"
        frame = b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece
        with contextlib.suppress(OSError):
            handler.wfile.write(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + start)
            while True:
                handler.wfile.write(frame)

    return reply


def announced(size: int, sent: bytes) -> Reply:
    """Promises so many bytes, sends these and closes."""
    return say(sent, **{"Content-Length": str(size), "Connection": "close"})


OUTPUT = b'{"scriptpubkey":"%s","value":1}'
TX = b'[{"txid":"%s","vin":[],"vout":[' % (b"ab" * 32)
KNOWN: list[Json] = [tx_of(1, SCRIPT), tx_of(2, SCRIPT, height=999)]

LIES: dict[str, Callable[[], Reply]] = {
    "the truth, and a text of 15 MB": lambda: say([*KNOWN, KNOWN[0] | {"x": "ab" * 7_500_000}]),
    "empty arrays": lambda: filled(b"[]", 15.9),
    "empty objects": lambda: filled(b"{}", 15.9),
    "numbers": lambda: filled(b"1.5", 15.9),
    "letters beyond 16 bits": lambda: filled(b'"\xf0\x9f\x98\x80"', 15.9),
    "short texts": lambda: filled(b'"0123456789"', 15.9),
    "broken outputs": lambda: filled(b'{"value":-1}', 2.9, TX, b"]}]"),
    "a list as long as is taken in": lambda: filled(OUTPUT % (b"00" * 60), 2.9, TX, b"]}]"),
    "three megabytes of empty arrays": lambda: filled(b"[]", 2.9),
    "a megabyte of empty arrays": lambda: filled(b"[]", 0.99),
    "a megabyte of empty objects": lambda: filled(b"{}", 0.99),
    "as many empty arrays as a page can hold": lambda: filled(b"[]", 0.4),
    "a megabyte of blocks without a field": lambda: filled(b'{"id":0}', 0.99),
    "a list without end": lambda: streaming(b"[", b"[]," * 20_000),
    "spaces in chunks without end": lambda: streaming(b"", b" " * 65_536, chunked=True),
    "digits without end": lambda: streaming(b"", b"0" * 65_536),
    "nesting": lambda: say("[" * 8_000_000 + "]" * 7_900_000),
    "a number of a million digits": lambda: say(f'[{{"txid": {"9" * 1_000_000}}}]'),
    "a list of such numbers": lambda: filled(b"9" * 1_000_000, 15.9),
    "differing names": lambda: say("[{" + ",".join(f'"{n:x}":0' for n in range(300_000)) + "}]"),
    "a head without end": lambda: endless_head,
    "4 GB announced": lambda: announced(2**32, b"[" + b" " * 5_000_000),
    "a block of 4 MB": lambda: say(bytes(4_000_000)),
    "a block of one byte more": lambda: say(bytes(4_000_001)),
}


@pytest.fixture(scope="module")
def honest() -> Iterator[FakeEsplora]:
    with FakeEsplora() as server:
        server.histories[ADDRESS] = KNOWN
        yield server


@pytest.fixture
def liar() -> Iterator[FakeEsplora]:
    with FakeEsplora() as server:
        yield server


def answers(folder: Path, *servers: FakeEsplora) -> tuple[Json, float]:
    """What a process is answered by these explorers, and the megabytes that it held at its peak."""
    ended = subprocess.run(
        [sys.executable, "-c", ASKING, ADDRESS, SCRIPT, *(server.root for server in servers)],
        env=clean_environ(PYTHONPATH=str(PROJECT)),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    found, peak_kb = ended.stdout.splitlines()
    return json.loads(found), int(peak_kb) / 1024


@pytest.fixture(scope="module")
def truth(honest, tmp_path_factory) -> Json:
    found, peak_mb = answers(tmp_path_factory.mktemp("truth"), honest)
    print(f"peak {peak_mb:.0f} MB: the truth")
    assert (found["height"], found["waiting"], found["is_used"]) == (1000, [1] * 8, True)
    return found


@pytest.mark.parametrize("name", LIES)
def test_a_lie_fills_no_memory_and_the_next_explorer_is_asked(honest, liar, truth, tmp_path, name):
    reply = LIES[name]()
    liar.instead = lambda _: reply
    found, peak_mb = answers(tmp_path, liar, honest)
    print(f"peak {peak_mb:.0f} MB: {name}")
    assert found == truth
    assert peak_mb < MOST_MB


def test_as_many_outputs_as_are_believed_fit(honest, truth, tmp_path, liar):
    paid = [{"scriptpubkey": SCRIPT, "value": 330}] * 14_000
    liar.instead = lambda path: (
        say([tx_of(1, SCRIPT, vout=paid)]) if path.endswith("/mempool") else None
    )
    liar.histories, liar.blocks = honest.histories, honest.blocks
    found, peak_mb = answers(tmp_path, liar, honest)
    print(f"peak {peak_mb:.0f} MB")
    assert set(found.pop("waiting")) == {1, 14_000}
    assert found.items() <= truth.items()
    assert peak_mb < MOST_MB
