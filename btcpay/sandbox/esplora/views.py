"""Esplora's JSON values: https://github.com/Blockstream/esplora/blob/master/API.md."""

from btcpay.bitcoin.tx import NO_TXID, TxIn, TxOut
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.ledger import Found, Ledger
from btcpay.sandbox.node.script import address_of, kind
from btcpay.sandbox.shop import Json

REGTEST_DIFFICULTY = 4.6565423739069247e-10  # mainnet's easiest target divided by regtest's


def tx_view(chain: Chain, found: Found) -> Json:
    tx, prevouts = found.tx, found.prevouts or (None,)
    return {
        "txid": tx.txid,
        "version": tx.version,
        "locktime": tx.locktime,
        "vin": [_input_view(i, p) for i, p in zip(tx.inputs, prevouts, strict=True)],
        "vout": [_output_view(output) for output in tx.outputs],
        "size": len(tx.raw),
        "weight": tx.weight,
        "fee": 0 if tx.is_coinbase else found.fee_sats,
        "status": _status_view(chain, found.height),
    }


def block_view(ledger: Ledger, block: Block) -> Json:
    return {
        "id": block.hash,
        "height": ledger.heights[block.hash],
        "version": block.version,
        "timestamp": block.time,
        "tx_count": len(block.txs),
        "size": len(block.raw),
        "weight": block.weight,
        "merkle_root": block.merkle_root,
        "previousblockhash": None if block.previous == NO_TXID else block.previous,
        "mediantime": ledger.median_time_past(block.hash),
        "nonce": block.nonce,
        "bits": block.bits,
        "difficulty": REGTEST_DIFFICULTY,
    }


def _status_view(chain: Chain, height: int | None) -> Json:
    if height is None:
        return {"confirmed": False}
    block = chain.ledger.blocks[chain.ledger.hashes[height]]
    named = {"block_height": height, "block_hash": block.hash, "block_time": block.time}
    return {"confirmed": True, **named}


def _input_view(txin: TxIn, prevout: TxOut | None) -> Json:
    view: Json = {
        "txid": txin.outpoint.txid,
        "vout": txin.outpoint.vout,
        "prevout": None if prevout is None else _output_view(prevout),
        "scriptsig": txin.script_sig.hex(),
        "is_coinbase": prevout is None,
        "sequence": txin.sequence,
    }
    if txin.witness:
        view["witness"] = [item.hex() for item in txin.witness]
    return view


def _output_view(output: TxOut) -> Json:
    view: Json = {
        "scriptpubkey": output.script.hex(),
        "scriptpubkey_type": kind(output.script),
        "value": output.value_sats,
    }
    if address := address_of(output.script):
        view["scriptpubkey_address"] = address
    return view
