"""What an explorer may answer, in the parts that are used; anything else is not believed.

Source: the HTTP API of Esplora (Blockstream/esplora, API.md), which mempool.space shares.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate, validates_schema

MAX_MONEY_SATS = 2_100_000_000_000_000
_UINT32 = validate.Range(0, 0xFFFFFFFF)
MAX_INPUTS = 100  # of a transaction that waits; who watches more for a replacement gains nothing
_HASH = validate.Regexp("[0-9a-f]{64}\\Z")
_is_hash = re.compile("[0-9a-f]{64}").fullmatch
_is_hex = re.compile("[0-9a-f]*").fullmatch
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


class Outspend(_Answer):
    """Whether an output is spent; if so, where the transaction is that spends it."""

    spent = fields.Boolean(required=True, truthy={True}, falsy={False})
    status = fields.Nested(Status, allow_none=True)

    @validates_schema
    def spent_says_where(self, data: Mapping[str, Any], **_: Any) -> None:
        """Spent nowhere is no answer."""
        if data["spent"] and not data.get("status"):
            raise ValidationError("spent without a status")


class Transaction(_Answer):
    """One entry of an address's history, without its inputs and outputs: they may be thousands."""

    txid = fields.String(required=True, validate=_HASH)
    status = fields.Nested(Status, required=True)


class Parts(NamedTuple):
    """What of a transaction concerns one script.

    `paid` has (vout, satoshis) of its outputs, `inputs` what the transaction spends: "txid:vout" of
    each, none when there are more than MAX_INPUTS.
    """

    paid: tuple[tuple[int, int], ...]
    inputs: tuple[str, ...]


def parts_of(tx: Any, script: str) -> Parts:
    """A transaction's inputs and outputs, every one of them looked at; `script` in hex.

    By hand: marshmallow keeps a value for each, and an error for each that is wrong. An answer of
    megabytes would need more memory than there is. Raises ValidationError at the first mistake.
    """
    vin, vout = (tx.get(name) if isinstance(tx, dict) else None for name in ("vin", "vout"))
    if not isinstance(vin, list) or not isinstance(vout, list):
        raise ValidationError("a transaction without inputs and outputs")
    return Parts(_read_outputs(vout, script), _read_inputs(vin))


def _read_outputs(vout: list[Any], script: str) -> tuple[tuple[int, int], ...]:
    """0 satoshis are no money."""
    paid, sum_sats = [], 0
    for number, output in enumerate(vout):
        to, sats = _members(output, "scriptpubkey", "value")
        if type(to) is not str or not _is_hex(to) or not _is_int(sats, MAX_MONEY_SATS):
            raise ValidationError("an output without a script in hex and an amount in satoshis")
        sum_sats += sats
        if to == script and sats:
            paid.append((number, sats))
    if sum_sats > MAX_MONEY_SATS:
        raise ValidationError("pays more than can exist")
    return tuple(paid)


def _read_inputs(vin: list[Any]) -> tuple[str, ...]:
    inputs = []
    for spending in vin:
        txid, vout = _members(spending, "txid", "vout")
        if type(txid) is not str or not _is_hash(txid) or not _is_int(vout, 0xFFFFFFFF):
            raise ValidationError("an input without txid and vout")
        if len(vin) <= MAX_INPUTS:
            inputs.append(f"{txid}:{vout}")
    return tuple(inputs)


def _members(value: Any, *names: str) -> tuple[Any, ...]:
    if not isinstance(value, dict):
        raise ValidationError("an input or output that is no object")
    return tuple(value.get(name) for name in names)


def _is_int(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most
