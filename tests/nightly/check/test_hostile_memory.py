"""The peak memory of a real `blocktill check` under hostile explorers."""

import contextlib
import re
from typing import Any

import pytest

from btcpay.chain.explorers.answers import MAX_COINS
from tests.support.bad_sources import COINS, invented
from tests.support.fake_esplora import endless_head, filled, say, tx_of
from tests.support.measured import check

MOST_MB = 200
PAYERS = 3
LOOKING = 6
RUNS = 20  # while sightings are invented, one every four minutes


def streaming(start, piece, chunked=False):
    """Sends pieces without end, until the client has had enough."""

    def reply(handler):
        handler.close_connection = True
        head = "Transfer-Encoding: chunked\r\n" if chunked else "Connection: close\r\n"
        frame = b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece
        with contextlib.suppress(OSError):
            handler.wfile.write(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + start)
            while True:
                handler.wfile.write(frame)

    return reply


ADDRESS = r"^/address/"
BLOCK = "/raw$"
HEADERS = "^/blocks(/[0-9]+)?$"
# By the path that is lied about: what goes out instead of what is true, or what is made of it.
LIES: dict[str, tuple[str, Any]] = {
    "the truth": ("nothing", None),
    "a block without end": (BLOCK, streaming(b"", bytes(65_536))),
    "a block in chunks without end": (BLOCK, streaming(b"", b"\1" * 65_536, chunked=True)),
    "a block of more": (BLOCK, say(bytes(4_000_001))),
    "a page with one text of 16 MB": (ADDRESS, lambda _: [tx_of(1, "", padding="ab" * 7_900_000)]),
    "a page of empty arrays": (ADDRESS, filled(b"[]", 15.9)),
    "a page of letters beyond 16 bits": (ADDRESS, filled(b'"\xf0\x9f\x98\x80"', 15.9)),
    "a page of broken outputs": (ADDRESS, filled(b'{"value":-1}', 2.9,
        b'[{"txid":"%s","vin":[],"vout":[' % (b"ab" * 32), b"]}]")),
    "a page as long as is taken in": (ADDRESS,
        filled(b'{"scriptpubkey":"%s","value":1}' % (b"00" * 60), 2.9, b'[{"vin":[],"vout":[',
        b"]}]")),
    "a page without end": (ADDRESS, streaming(b"[", b"[]," * 20_000)),
    "nesting": (ADDRESS, say("[" * 8_000_000 + "]" * 7_900_000)),
    "a number of a million digits": (ADDRESS, say(f'[{{"txid": {"9" * 1_000_000}}}]')),
    "a page of headers without end": (HEADERS, streaming(b"[", b"{}," * 20_000)),
    "a page of as many as there is room for": (HEADERS, filled(b"{}", 0.9)),
    "a header without end": ("/header$", streaming(b"", b"00" * 32_768)),
    "a tip without end": ("/blocks/tip/hash$", streaming(b"", b"1" * 65_536)),
    "as many empty arrays as a page can hold": (ADDRESS, filled(b"[]", 0.4)),
    "4 GB announced": (ADDRESS, say(b"[" + b" " * 5_000_000, **{"Content-Length": str(2**32),
        "Connection": "close"})),
    "a head without end": (ADDRESS, endless_head),
    "a page of differing names": (ADDRESS,
        say("[{" + ",".join(f'"{n:x}":0' for n in range(1_500_000)) + "}]")),
}  # fmt: skip


@pytest.fixture
def till(lied_to):
    return lied_to(honest_too=True, has_begun=False)


def settled(till, folder, name, payers=PAYERS):
    """True if a check settles every payment, and within the bound.

    All are in the last blocks; some more have opened their pages, and are looked for.
    """
    till.open_page(*(till.shop.invoice() for _ in range(LOOKING)))
    invoices = [till.shop.invoice() for _ in range(payers)]
    for invoice in invoices:
        till.pay(invoice)
    till.mine(2)  # so that headers are asked for by the page, too
    run, peak_mb = check(till, folder)
    print(f"peak {peak_mb:.0f} MB: {name}")
    assert peak_mb < MOST_MB
    return set(run["changed"]) == {invoice["id"] for invoice in invoices}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_fills_no_memory_and_keeps_no_payment_from_being_settled(
    till, tmp_path, name
):
    path, lie = LIES[name]
    if lie is endless_head:
        till.liar.instead = lambda asked: lie if re.search(path, asked) else None
    else:
        till.liar.lies = {
            path: (lambda _: lie) if lie and lie.__name__ == "reply" else lie
        }
    assert settled(till, tmp_path, name)
    assert name == "the truth" or any(
        re.search(path, asked) for asked in till.liar.asked
    )


@pytest.mark.parametrize(
    ("txs", "outputs"),
    [
        pytest.param(1, 1, id="one that waits, which nobody made"),
        pytest.param(25, 1_000, id="25,000 outputs a page"),
        pytest.param(2_000, 0, id="2,000 strangers' transactions a page"),
        pytest.param(
            1, MAX_COINS - 100, id="as many outputs as are believed, run after run"
        ),
    ],
)
def test_what_is_invented_to_wait_fills_no_memory_and_pays_nothing(
    till, tmp_path, txs, outputs
):
    till.liar.instead = invented(txs, outputs)
    runs = 2 if outputs == MAX_COINS - 100 else 1
    for number in range(runs):
        name = f"{txs} of {outputs} outputs, run {number + 1}"
        assert settled(till, tmp_path, name, 2)
    till.liar.instead = lambda _: None
    run, _ = check(till, tmp_path)
    assert run["failed"] == []
    paid = [payment["invoice_id"] for payment in till.payments()]
    assert len(set(paid)) == len(paid) == 2 * runs


def test_what_is_invented_for_an_hour_at_twenty_pages_has_a_bound(
    lied_to, clock, tmp_path
):
    """148 outputs a look, whose transactions spend a hundred coins each; then a block is read.

    It ends now, since the process at the end has no other clock: calls of minutes that are to come
    would count as spent.
    """
    clock.move(minutes=-4 * RUNS)
    till = lied_to(BLOCKTILL_EXPLORER_CALLS_PER_HOUR="600")
    invoices = [till.shop.invoice() for _ in range(20)]
    till.liar.instead = invented(148, vin=COINS)
    for number in range(RUNS):
        first = 2 * number % 20  # a run believes no more than two such pages
        till.open_page(*invoices[first : first + 2])
        till.check()
        clock.move(minutes=4)
    till.open_page(*invoices)
    for one in invoices[:2]:
        till.pay(one)
    till.mine()
    run, peak_mb = check(till, tmp_path)
    assert sorted(run["changed"].values()) == ["paid", "paid"] and peak_mb < MOST_MB
    size = sum(file.stat().st_size for file in tmp_path.glob("blocktill.db*")) / 1e6
    rows = till.shop.service.db.connection.execute_sql(
        "SELECT count(*) FROM output"
    ).fetchone()[0]
    print(f"{rows} rows, {size:.1f} MB on disk, {peak_mb:.0f} MB at most")
    assert rows <= 2 + 20 * 200 and size < 60
