"""The sandbox speaks Esplora as electrs does: shapes, pages, plain text errors, outages."""

import hashlib
from pathlib import Path

import pytest
from flask.testing import FlaskClient

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


def fold(txid: str, merkle: list[str], pos: int) -> str:
    """The root that a merkle branch leads to."""
    node = bytes.fromhex(txid)[::-1]
    for sibling in (bytes.fromhex(each)[::-1] for each in merkle):
        node = dsha(sibling + node if pos % 2 else node + sibling)
        pos //= 2
    return node[::-1].hex()


def test_the_tip_is_told_in_plain_text(client, sandbox):
    height = client.get("/blocks/tip/height")
    assert (height.text, height.mimetype) == (str(FIRST_BLOCKS), "text/plain")
    assert client.get("/blocks/tip/hash").text == sandbox.chain.ledger.hashes[-1]


def test_a_block_is_shown_with_esploras_keys(client, sandbox):
    block_hash = client.get("/block-height/150").text
    block = client.get(f"/block/{block_hash}").json
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
    txids = client.get(f"/block/{block_hash}/txids").json
    assert client.get(f"/block/{block_hash}/txid/0").text == txids[0] == block["merkle_root"]


def test_a_block_knows_whether_it_is_on_the_best_chain(client, sandbox):
    lost = sandbox.chain.mine(1, NOW)[0]
    before = client.get(f"/block/{lost}/status").json
    assert before == {"in_best_chain": True, "height": FIRST_BLOCKS + 1, "next_best": None}
    first, second = sandbox.chain.reorganise(1, NOW)
    assert client.get(f"/block/{lost}/status").json["in_best_chain"] is False
    assert client.get(f"/block/{lost}").json["height"] == FIRST_BLOCKS + 1
    assert client.get(f"/block/{first}/status").json["next_best"] == second
    assert client.get(f"/block/{UNKNOWN}/status").json["in_best_chain"] is False


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (f"/block-height/{FIRST_BLOCKS + 1}", 404, "Block not found"),
        ("/block-height/x", 400, "Invalid number"),
        ("/block-height/-1", 400, "Invalid number"),
        (f"/block/{UNKNOWN}", 404, "Block not found"),
        (f"/block/{UNKNOWN}/txids", 404, "Block not found"),
        ("/block/xyz", 400, "Invalid hex string"),
        (f"/tx/{UNKNOWN}", 404, "Transaction not found"),
        (f"/tx/{UNKNOWN}/hex", 404, "Transaction not found"),
        (f"/tx/{UNKNOWN}/outspends", 404, "Transaction not found"),
        (f"/tx/{UNKNOWN}/merkle-proof", 404, "Transaction not found or is unconfirmed"),
        ("/tx/xyz", 400, "Invalid hex string"),
        ("/address/nonsense", 400, "nonsense is no Bitcoin address"),
        ("/address/nonsense/utxo", 400, "nonsense is no Bitcoin address"),
        ("/nowhere", 404, 'endpoint does not exist "/nowhere"'),
    ],
)
def test_what_cannot_be_answered_is_refused_in_plain_text(client, path, status, message):
    answer = client.get(path)
    assert (answer.status_code, answer.text, answer.mimetype) == (status, message, "text/plain")


def test_an_unknown_transaction_is_not_confirmed(client):
    assert client.get(f"/tx/{UNKNOWN}/status").json == {"confirmed": False}


def test_a_waiting_transaction_has_no_block_keys_anywhere(client, sandbox):
    txid = paid(sandbox)
    waiting = {"confirmed": False}
    assert client.get(f"/tx/{txid}").json["status"] == waiting
    assert client.get(f"/tx/{txid}/status").json == waiting
    assert client.get(f"/address/{ADDRESS}/txs").json[0]["status"] == waiting
    assert client.get(f"/address/{ADDRESS}/txs/mempool").json[0]["status"] == waiting
    assert client.get(f"/address/{ADDRESS}/utxo").json[0]["status"] == waiting
    assert client.get(f"/address/{ADDRESS}/txs/chain").json == []


def test_a_confirmed_transaction_names_its_block(client, sandbox):
    txid = paid(sandbox, blocks=1)
    block = sandbox.chain.ledger.tip
    assert client.get(f"/tx/{txid}/status").json == {
        "confirmed": True,
        "block_height": FIRST_BLOCKS + 1,
        "block_hash": block.hash,
        "block_time": block.time,
    }


def test_a_transaction_is_shown_with_esploras_keys(client, sandbox):
    txid = paid(sandbox)
    tx = client.get(f"/tx/{txid}").json
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
    raw = client.get(f"/tx/{txid}/raw").data
    assert client.get(f"/tx/{txid}/hex").text == raw.hex() and tx["size"] == len(raw)


def test_a_coinbase_has_no_prevout_and_no_fee(client):
    block_hash = client.get("/blocks/tip/hash").text
    tx = client.get("/tx/" + client.get(f"/block/{block_hash}/txid/0").text).json
    assert tx["fee"] == 0
    assert (tx["vin"][0]["is_coinbase"], tx["vin"][0]["prevout"]) == (True, None)
    assert tx["vout"][1]["scriptpubkey_type"] == "op_return"
    assert "scriptpubkey_address" not in tx["vout"][1]


@pytest.mark.parametrize("others", [0, 1, 2, 3, 6])
def test_a_merkle_proof_leads_to_the_root_in_the_header(client, sandbox, others):
    for _ in range(others):
        sandbox.wallet.pay(ADDRESS, 5_000, NOW)
    txid = paid(sandbox, blocks=1)
    proof = client.get(f"/tx/{txid}/merkle-proof").json
    assert (proof["block_height"], proof["pos"]) == (FIRST_BLOCKS + 1, others + 1)
    block_hash = client.get("/blocks/tip/hash").text
    header = bytes.fromhex(client.get(f"/block/{block_hash}/header").text)
    assert fold(txid, proof["merkle"], proof["pos"]) == header[36:68][::-1].hex()


def test_a_waiting_transaction_has_no_merkle_proof(client, sandbox):
    assert client.get(f"/tx/{paid(sandbox)}/merkle-proof").status_code == 404


def test_history_comes_in_pages_newest_first(client, sandbox):
    confirmed = [paid(sandbox, blocks=1) for _ in range(60)][::-1]
    waiting = [paid(sandbox) for _ in range(55)][::-1]
    first = [tx["txid"] for tx in client.get(f"/address/{ADDRESS}/txs").json]
    assert first == waiting[:50] + confirmed[:25]
    mempool = client.get(f"/address/{ADDRESS}/txs/mempool").json
    assert [tx["txid"] for tx in mempool] == waiting[:50]
    seen: list[str] = []
    while page := client.get(
        f"/address/{ADDRESS}/txs/chain/{seen[-1] if seen else ''}".rstrip("/")
    ):
        txids = [tx["txid"] for tx in page.json]
        seen += txids
        if not txids:
            break
        assert len(txids) <= 25
    assert seen == confirmed
    assert client.get(f"/address/{ADDRESS}/txs/chain/{UNKNOWN}").json == []


def test_an_addresss_sums_count_spent_outputs_too(client, sandbox):
    address = sandbox.wallet.address
    before = client.get(f"/address/{address}").json
    paid(sandbox, sats=10_000)
    stats = client.get(f"/address/{address}").json
    assert stats["chain_stats"] == before["chain_stats"]
    assert stats["chain_stats"]["funded_txo_count"] == FIRST_BLOCKS
    assert stats["mempool_stats"]["spent_txo_count"] == 1
    assert stats["mempool_stats"]["tx_count"] == 1
    payee = client.get(f"/address/{ADDRESS}").json
    assert payee["mempool_stats"] == {
        "funded_txo_count": 1,
        "funded_txo_sum": 10_000,
        "spent_txo_count": 0,
        "spent_txo_sum": 0,
        "tx_count": 1,
    }
    sandbox.chain.mine(1, NOW)
    assert client.get(f"/address/{ADDRESS}").json["chain_stats"] == payee["mempool_stats"]


def test_spent_outputs_leave_the_utxo_list_and_name_their_spender(client, sandbox):
    coin = sandbox.wallet.coins()[0].outpoint
    txid = paid(sandbox)
    outpoints = {
        (u["txid"], u["vout"]) for u in client.get(f"/address/{sandbox.wallet.address}/utxo").json
    }
    assert coin not in outpoints and (txid, 1) in outpoints
    spend = client.get(f"/tx/{coin.txid}/outspend/{coin.vout}").json
    assert spend == {"spent": True, "txid": txid, "vin": 0, "status": {"confirmed": False}}
    sandbox.chain.mine(1, NOW)
    assert client.get(f"/tx/{coin.txid}/outspends").json[0]["status"]["confirmed"] is True
    assert client.get(f"/tx/{txid}/outspend/0").json == {"spent": False}
    assert client.get(f"/tx/{txid}/outspends").json == [{"spent": False}] * 2


class TestBroadcasting:
    def test_a_transaction_is_taken_in_and_its_txid_told(self, client, sandbox):
        txid = paid(sandbox)
        raw = client.get(f"/tx/{txid}/hex").text
        sandbox.chain.mempool.remove([txid])
        assert client.get(f"/tx/{txid}").status_code == 404
        assert client.post("/tx", data=raw + "\n").text == txid
        assert client.get(f"/tx/{txid}").status_code == 200

    @pytest.mark.parametrize("body", ["", "zz", "00", "0100", "é", "02000000" + "ff" * 40])
    def test_what_is_no_transaction_is_refused(self, client, body):
        answer = client.post("/tx", data=body.encode())
        assert answer.status_code == 400
        assert answer.text.startswith('sendrawtransaction RPC error: {"code": -22')

    def test_a_refused_one_is_told_why(self, client, sandbox):
        (coin, *_) = sandbox.wallet.coins()
        cheap = sandbox.wallet.build([coin], [], 1)
        answer = client.post("/tx", data=cheap.hex())
        assert (answer.status_code, answer.mimetype) == (400, "text/plain")
        assert '{"code": -26, "message": "min relay fee not met"}' in answer.text


class TestOutages:
    def test_every_explorer_path_answers_503_until_it_is_up_again(self, client, sandbox):
        txid = paid(sandbox)
        raw = client.get(f"/tx/{txid}/hex").text
        paths = [
            "/blocks/tip/height",
            "/block-height/0",
            f"/address/{ADDRESS}",
            f"/tx/{txid}/status",
        ]
        client.post("/sandbox/explorer", data={"state": "down"})
        down = [client.get(path) for path in paths] + [client.post("/tx", data=raw)]
        assert {(answer.status_code, answer.mimetype) for answer in down} == {(503, "text/plain")}
        assert client.get("/price").status_code == client.get("/").status_code == 200
        client.post("/sandbox/explorer", data={"state": "up"})
        assert {client.get(path).status_code for path in paths} == {200}

    def test_the_ticker_tells_a_price_or_nothing(self, client):
        assert client.get("/price").json == {"usd": "60000.00"}
        client.post("/sandbox/price", data={"usd": "61234.5"})
        assert client.get("/price").json == {"usd": "61234.50"}
        client.post("/sandbox/price", data={"state": "down"})
        assert client.get("/price").status_code == 503
        client.post("/sandbox/price", data={"usd": "1"})
        assert client.get("/price").status_code == 503
        client.post("/sandbox/price")
        assert client.get("/price").json == {"usd": "1.00"}
