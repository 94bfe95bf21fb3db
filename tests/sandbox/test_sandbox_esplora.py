"""The sandbox speaks Esplora as electrs does: shapes, pages, plain text errors, outages."""

import hashlib
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from btcpay.sandbox.node.block import parse_block
from btcpay.sandbox.server import create_sandbox
from btcpay.sandbox.state import EXTENSION, FIRST_BLOCKS, Sandbox

NOW = 1_800_000_000
ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
UNKNOWN = "ab" * 32


@pytest.fixture
def app(tmp_path: Path):
    made = create_sandbox(tmp_path, lambda: NOW)
    yield made
    made.extensions[EXTENSION].close()


@pytest.fixture
def client(app) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def sandbox(app) -> Sandbox:
    return app.extensions[EXTENSION]


def paid(sandbox: Sandbox, blocks: int = 0, sats: int = 10_000) -> str:
    """The txid of a payment to ADDRESS with `blocks` confirmations."""
    txid = sandbox.wallet.pay(ADDRESS, sats, NOW)
    if blocks:
        sandbox.chain.mine(blocks, NOW)
    return txid


def dsha(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def test_the_tip_is_told_in_plain_text(client, sandbox):
    height = client.get("/blocks/tip/height")
    assert (height.text, height.mimetype) == (str(FIRST_BLOCKS), "text/plain")
    assert client.get("/blocks/tip/hash").text == sandbox.chain.ledger.hashes[-1]


def test_a_block_is_shown_with_esploras_keys(client, sandbox):
    block_hash = client.get("/block-height/150").text
    block, *older = client.get("/blocks/150").json
    assert block.keys() == {
        *("id", "height", "version", "timestamp", "tx_count", "size", "weight", "merkle_root"),
        *("previousblockhash", "mediantime", "nonce", "bits", "difficulty"),
    }
    assert (block["id"], block["height"], block["bits"]) == (block_hash, 150, 0x207FFFFF)
    assert block["previousblockhash"] == client.get("/block-height/149").text
    header = client.get(f"/block/{block_hash}/header").text
    raw = client.get(f"/block/{block_hash}/raw").data
    assert raw[:80].hex() == header and len(raw) == block["size"]
    assert dsha(bytes.fromhex(header))[::-1].hex() == block_hash
    assert parse_block(raw).txs[0].txid == block["merkle_root"]
    assert [each["height"] for each in older] == list(range(149, 140, -1))


def test_the_newest_blocks_are_those_from_the_tip_down_to_the_first(client, sandbox):
    newest = client.get("/blocks").json
    assert newest == client.get(f"/blocks/{FIRST_BLOCKS}").json and len(newest) == 10
    sandbox.chain.mine(1, NOW)
    heights = [each["height"] for each in client.get("/blocks").json[:2]]
    assert heights == [FIRST_BLOCKS + 1, FIRST_BLOCKS]
    third, _, _, first = client.get("/blocks/3").json
    assert (third["height"], first["height"], first["previousblockhash"]) == (3, 0, None)


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
        ("/address/nonsense/txs", 400, "nonsense is no Bitcoin address: a wrong checksum"),
        ("/nowhere", 404, 'endpoint does not exist "/nowhere"'),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.text, answer.mimetype) == (status, message, "text/plain")


def test_a_transaction_names_its_block_once_it_is_in_one(client, sandbox):
    paid(sandbox)
    for path in ("txs", "txs/mempool"):
        (tx,) = client.get(f"/address/{ADDRESS}/{path}").json
        assert tx["status"] == {"confirmed": False}
    sandbox.chain.mine(1, NOW)
    block = sandbox.chain.ledger.tip
    assert client.get(f"/address/{ADDRESS}/txs").json[0]["status"] == {
        "confirmed": True,
        "block_height": FIRST_BLOCKS + 1,
        "block_hash": block.hash,
        "block_time": block.time,
    }
    assert client.get(f"/address/{ADDRESS}/txs/mempool").json == []


def test_a_transaction_is_shown_with_esploras_keys(client, sandbox):
    txid = paid(sandbox)
    (tx,) = client.get(f"/address/{ADDRESS}/txs").json
    assert tx.keys() == {
        *("txid", "version", "locktime", "vin", "vout", "size", "weight", "fee", "status"),
    }
    (vin,) = tx["vin"]
    assert vin["prevout"]["scriptpubkey_type"] == "p2sh"
    assert vin["prevout"]["scriptpubkey_address"] == sandbox.wallet.address
    assert (vin["is_coinbase"], vin["sequence"], len(vin["witness"])) == (False, 0xFFFFFFFD, 2)
    assert tx["vout"][0] == {
        "scriptpubkey": "0014751e76e8199196d454941c45d1b3a323f1433bd6",
        "scriptpubkey_type": "v0_p2wpkh",
        "scriptpubkey_address": ADDRESS,
        "value": 10_000,
    }
    assert tx["fee"] == vin["prevout"]["value"] - sum(out["value"] for out in tx["vout"])
    assert tx["size"] == len(sandbox.chain.mempool.entries[txid].tx.raw)


def test_a_coinbase_has_no_prevout_and_no_fee(client, sandbox):
    tx = client.get(f"/address/{sandbox.wallet.address}/txs").json[0]
    assert tx["txid"] == sandbox.chain.ledger.tip.txs[0].txid
    assert tx["fee"] == 0
    assert (tx["vin"][0]["is_coinbase"], tx["vin"][0]["prevout"]) == (True, None)
    assert tx["vout"][1]["scriptpubkey_type"] == "op_return"
    assert "scriptpubkey_address" not in tx["vout"][1]


def test_the_newest_of_a_history_is_shown_first(client, sandbox):
    confirmed = [paid(sandbox, blocks=1) for _ in range(60)][::-1]
    waiting = [paid(sandbox) for _ in range(55)][::-1]
    first = [tx["txid"] for tx in client.get(f"/address/{ADDRESS}/txs").json]
    assert first == waiting[:50] + confirmed[:25]
    mempool = client.get(f"/address/{ADDRESS}/txs/mempool").json
    assert [tx["txid"] for tx in mempool] == waiting[:50]


class TestOutages:
    def test_every_explorer_path_answers_503_until_it_is_up_again(self, client, sandbox):
        paths = ["/blocks/tip/height", "/block-height/0", f"/address/{ADDRESS}/txs"]
        client.post("/sandbox/explorer", data={"state": "down"})
        down = [client.get(path) for path in paths]
        assert {(answer.status_code, answer.mimetype) for answer in down} == {(503, "text/plain")}
        assert client.get("/price").status_code == client.get("/").status_code == 200
        client.post("/sandbox/explorer", data={"state": "up"})
        assert {client.get(path).status_code for path in paths} == {200}

    def test_the_ticker_tells_a_price_or_nothing(self, client):
        assert client.get("/price").json["usd"] == "60000.00"
        client.post("/sandbox/price", data={"usd": "61234.5"})
        assert client.get("/price").json["usd"] == "61234.50"
        client.post("/sandbox/price", data={"state": "down"})
        assert client.get("/price").status_code == 503
        client.post("/sandbox/price", data={"usd": "1"})
        assert client.get("/price").status_code == 503
        client.post("/sandbox/price")
        assert client.get("/price").json["usd"] == "1.00"
