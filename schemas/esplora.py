"""What an explorer may answer, in the parts that are used; anything else is not believed.

Source: the HTTP API of Esplora (Blockstream/esplora, API.md), which mempool.space shares.
"""

from collections.abc import Mapping
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate, validates_schema

MAX_MONEY_SATS = 2_100_000_000_000_000
_UINT32 = validate.Range(0, 0xFFFFFFFF)
_HASH = validate.Regexp("[0-9a-f]{64}\\Z")
_HEX = validate.Regexp("([0-9a-f]{2})*\\Z")
_HEIGHT = validate.Range(0, 100_000_000)


class _Answer(Schema):
    class Meta:
        unknown = EXCLUDE


class Status(_Answer):
    """Where a transaction is; unconfirmed entries lack the block_* keys."""

    confirmed = fields.Boolean(required=True, truthy={True}, falsy={False})
    block_height = fields.Integer(strict=True, validate=_HEIGHT, allow_none=True)
    block_hash = fields.String(validate=_HASH, allow_none=True)
    block_time = fields.Integer(strict=True, validate=_UINT32, allow_none=True)

    @validates_schema
    def confirmed_names_its_block(self, data: Mapping[str, Any], **_: Any) -> None:
        """A confirmation without height, hash and time proves nothing."""
        names = ("block_height", "block_hash", "block_time")
        if data["confirmed"] and any(data.get(name) is None for name in names):
            raise ValidationError("confirmed without a block")


class Input(_Answer):
    """What a transaction spends."""

    txid = fields.String(required=True, validate=_HASH)
    vout = fields.Integer(required=True, strict=True, validate=_UINT32)


class TxOutput(_Answer):
    """What a transaction pays, in satoshis."""

    scriptpubkey = fields.String(required=True, validate=_HEX)
    value = fields.Integer(required=True, strict=True, validate=validate.Range(0, MAX_MONEY_SATS))


class Transaction(_Answer):
    """One entry of an address's history."""

    txid = fields.String(required=True, validate=_HASH)
    vin = fields.List(fields.Nested(Input), required=True)
    vout = fields.List(fields.Nested(TxOutput), required=True)
    status = fields.Nested(Status, required=True)

    @validates_schema
    def pays_what_can_exist(self, data: Mapping[str, Any], **_: Any) -> None:
        """More than 21 million bitcoin at once are no transaction."""
        if sum(output["value"] for output in data["vout"]) > MAX_MONEY_SATS:
            raise ValidationError("pays more than can exist")


class MerkleProof(_Answer):
    """A transaction's siblings up to the Merkle root, and its position in the block."""

    merkle = fields.List(
        fields.String(validate=_HASH), required=True, validate=validate.Length(max=32)
    )
    pos = fields.Integer(required=True, strict=True, validate=_UINT32)
