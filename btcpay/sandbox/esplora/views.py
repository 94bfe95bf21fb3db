"""Esplora's JSON values, as far as the service reads them.

Source: https://github.com/Blockstream/esplora/blob/master/API.md.
"""

from btcpay.bitcoin.tx import NO_TXID
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.ledger import Found, Ledger
from btcpay.sandbox.shop import Json


def tx_view(found: Found) -> Json:
    outpoints = [txin.outpoint for txin in found.tx.inputs]
    outputs = found.tx.outputs
    return {
        "txid": found.tx.txid,
        "vin": [{"txid": outpoint.txid, "vout": outpoint.vout} for outpoint in outpoints],
        "vout": [{"scriptpubkey": o.script.hex(), "value": o.value_sats} for o in outputs],
        "status": {"confirmed": found.height is not None},
    }


def block_view(ledger: Ledger, block: Block) -> Json:
    return {
        "id": block.hash,
        "height": ledger.heights[block.hash],
        "version": block.version,
        "timestamp": block.time,
        "merkle_root": block.merkle_root,
        "previousblockhash": None if block.previous == NO_TXID else block.previous,
        "nonce": block.nonce,
        "bits": block.bits,
    }
