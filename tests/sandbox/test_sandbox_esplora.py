"""The sandbox speaks Esplora as electrs does: shapes, pages, plain text errors, outages."""

import pytest

from btcpay.sandbox.server import create_app
from btcpay.sandbox.state import EXTENSION, FIRST_BLOCKS, open_sandbox
from tests.support.fake_esplora import ADDRESS

NOW = 1_800_000_000
UNKNOWN = "ab" * 32


@pytest.fixture
def app(tmp_path):
    made = create_app()
    made.extensions[EXTENSION] = sandbox = open_sandbox(tmp_path, lambda: NOW)
    yield made
    sandbox.close()


@pytest.fixture
def client(app):
    return app.test_client()


@pytest.fixture
def sandbox(app):
    return app.extensions[EXTENSION]


def paid(sandbox, blocks=0, sats=10_000):
    """The txid of a payment to ADDRESS with `blocks` confirmations."""
    txid = sandbox.wallet.pay(ADDRESS, sats, NOW)
    if blocks:
        sandbox.chain.mine(blocks, NOW)
    return txid


def test_what_cannot_be_answered_is_refused_in_plain_text(client):
    for path, status, message in (
        (f"/block-height/{FIRST_BLOCKS + 1}", 404, "Block not found"),
        ("/block-height/x", 400, "Invalid number"),
        ("/block-height/-1", 400, "Invalid number"),
        (f"/blocks/{FIRST_BLOCKS + 1}", 404, "Block not found"),
        ("/blocks/x", 400, "Invalid number"),
        (f"/block/{UNKNOWN}/header", 404, "Block not found"),
        (f"/block/{UNKNOWN}/raw", 404, "Block not found"),
        ("/block/xyz/header", 400, "Invalid hex string"),
        (f"/tx/{UNKNOWN}/hex", 404, f'endpoint does not exist "/tx/{UNKNOWN}/hex"'),
        (
            "/address/nonsense/txs",
            400,
            "nonsense is no Bitcoin address: a wrong checksum",
        ),
        ("/nowhere", 404, 'endpoint does not exist "/nowhere"'),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.text, answer.mimetype) == (
            status,
            message,
            "text/plain",
        )


def test_a_transaction_is_shown_with_esploras_keys(client, sandbox):
    txid = paid(sandbox)
    spent = sandbox.chain.mempool.entries[txid].tx.inputs[0].outpoint
    (tx,) = client.get(f"/address/{ADDRESS}/txs").json
    assert (tx["txid"], tx["status"]) == (txid, {"confirmed": False})
    assert tx["vin"] == [{"txid": spent.txid, "vout": spent.vout}]
    script = "0014751e76e8199196d454941c45d1b3a323f1433bd6"
    assert tx["vout"][0] == {"scriptpubkey": script, "value": 10_000}


def test_the_newest_of_a_history_is_shown_first(client, sandbox):
    confirmed = [paid(sandbox, blocks=1) for _ in range(60)][::-1]
    waiting = [paid(sandbox) for _ in range(55)][::-1]
    first = [tx["txid"] for tx in client.get(f"/address/{ADDRESS}/txs").json]
    assert first == waiting[:50] + confirmed[:25]
    mempool = client.get(f"/address/{ADDRESS}/txs/mempool").json
    assert [tx["txid"] for tx in mempool] == waiting[:50]


class TestOutages:
    def test_every_explorer_path_answers_503_until_it_is_up_again(
        self, client, sandbox
    ):
        paths = ["/blocks/tip/height", "/block-height/0", f"/address/{ADDRESS}/txs"]
        pressed = client.post(
            "/sandbox/explorer",
            data={"state": "down"},
            headers={"Accept": "application/json"},
        )
        assert pressed.json == {"explorer": "down"}
        down = [client.get(path) for path in paths]
        assert {(answer.status_code, answer.mimetype) for answer in down} == {
            (503, "text/plain")
        }
        assert client.get("/price").status_code == client.get("/").status_code == 200
        client.post("/sandbox/explorer", data={"state": "up"})
        assert {client.get(path).status_code for path in paths} == {200}

    def test_the_ticker_tells_a_price_or_nothing(self, client):
        assert client.get("/price").json["usd"] == "60000.00"
        client.post("/sandbox/price", data={"usd": "$61,234.5"})
        assert client.get("/price").json["usd"] == "61234.50"
        assert "$<b>61,234.50" in client.get("/").text
        client.post("/sandbox/price", data={"state": "down"})
        assert client.get("/price").status_code == 503
        client.post("/sandbox/price", data={"usd": "1"})
        assert client.get("/price").status_code == 503
        client.post("/sandbox/price", data={"state": "up"})
        assert client.get("/price").json["usd"] == "1.00"
