"""The answers of an explorer, as far as they are used; any other shape is refused.

Source: the HTTP API of Esplora (Blockstream/esplora, API.md), which mempool.space shares.
"""

import re
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from btcpay.values.money import MAX_MONEY_SATS

_is_hash = re.compile("[0-9a-f]{64}").fullmatch
_is_hex = re.compile("[0-9a-f]*").fullmatch
_UINT32 = validate.Range(0, 0xFFFFFFFF)
_HASH = validate.Regexp("[0-9a-f]{64}\\Z")
_HEIGHT = validate.Range(0, 100_000_000)


class _Answer(Schema):
    class Meta:
        unknown = EXCLUDE


class Status(_Answer):
    """A transaction's state, without its block: blocks themselves prove what they hold."""

    confirmed = fields.Boolean(required=True, truthy={True}, falsy={False})


class Block(_Answer):
    """One entry of a page of blocks: its header's fields; the first block has nothing before it.

    Some servers show the version as signed, others not.
    """

    id = fields.String(required=True, validate=_HASH)
    height = fields.Integer(required=True, strict=True, validate=_HEIGHT)
    version = fields.Integer(
        required=True, strict=True, validate=validate.Range(-0x80000000, 0xFFFFFFFF)
    )
    previousblockhash = fields.String(validate=_HASH, allow_none=True, load_default=None)
    merkle_root = fields.String(required=True, validate=_HASH)
    timestamp = fields.Integer(required=True, strict=True, validate=_UINT32)
    bits = fields.Integer(required=True, strict=True, validate=_UINT32)
    nonce = fields.Integer(required=True, strict=True, validate=_UINT32)


class Outputs(fields.Field[list[tuple[str, int]]]):
    """A transaction's outputs: (script in hex, satoshis) of each.

    There may be thousands, so the first mistake ends the reading: a list of schemas would keep an
    error for each.
    """

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> list[tuple[str, int]]:
        outputs: list[Any] = [
            (one.get("scriptpubkey"), one.get("value")) for one in _objects(value)
        ]
        for script, sats in outputs:
            if type(script) is not str or not _is_hex(script) or not _is_int(sats, MAX_MONEY_SATS):
                raise ValidationError("an output without a script in hex and an amount in satoshis")
        if sum(sats for _, sats in outputs) > MAX_MONEY_SATS:
            raise ValidationError("pays more than can exist")
        return outputs


class Inputs(fields.Field[list[str]]):
    """The coins that a transaction spends: "txid:vout" of each input; see Outputs."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> list[str]:
        inputs = [(one.get("txid"), one.get("vout")) for one in _objects(value)]
        for txid, vout in inputs:
            if type(txid) is not str or not _is_hash(txid) or not _is_int(vout, 0xFFFFFFFF):
                raise ValidationError("an input without txid and vout")
        return [f"{txid}:{vout}" for txid, vout in inputs]


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValidationError("no list of objects")
    return value


def _is_int(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


class Transaction(_Answer):
    """One entry of an address's history or mempool."""

    txid = fields.String(required=True, validate=_HASH)
    status = fields.Nested(Status, required=True)
    vin = Inputs(required=True)
    vout = Outputs(required=True)
