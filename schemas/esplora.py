"""What an explorer may answer, in the parts that are used; anything else is not believed.

Source: the HTTP API of Esplora (Blockstream/esplora, API.md), which mempool.space shares.
"""

from collections.abc import Mapping
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate, validates_schema

_UINT32 = validate.Range(0, 0xFFFFFFFF)
_HASH = validate.Regexp("[0-9a-f]{64}\\Z")
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


class Transaction(_Answer):
    """One entry of an address's history, without its inputs and outputs: they may be thousands."""

    txid = fields.String(required=True, validate=_HASH)
    status = fields.Nested(Status, required=True)
