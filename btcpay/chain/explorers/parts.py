"""A transaction's inputs and outputs in an explorer's answer, of which one may have thousands."""

import re
from typing import Any, NamedTuple

from btcpay.chain.explorers.shape import STRANGE
from btcpay.values.errors import FetchError
from btcpay.values.money import MAX_MONEY_SATS

MAX_INPUTS = 100  # of a transaction that waits; who watches more for a replacement gains nothing
_is_hash = re.compile("[0-9a-f]{64}").fullmatch
_is_hex = re.compile("[0-9a-f]*").fullmatch


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
    megabytes would need more memory than there is. Raises FetchError at the first mistake.
    """
    vin, vout = (tx.get(name) if isinstance(tx, dict) else None for name in ("vin", "vout"))
    if not isinstance(vin, list) or not isinstance(vout, list):
        raise FetchError(f"{STRANGE}: a transaction without inputs and outputs")
    return Parts(_read_outputs(vout, script), _read_inputs(vin))


def _read_outputs(vout: list[Any], script: str) -> tuple[tuple[int, int], ...]:
    """0 satoshis are no money."""
    paid, sum_sats = [], 0
    for number, output in enumerate(vout):
        to, sats = _members(output, "scriptpubkey", "value")
        if type(to) is not str or not _is_hex(to) or not _is_int(sats, MAX_MONEY_SATS):
            raise FetchError(
                f"{STRANGE}: an output without a script in hex and an amount in satoshis"
            )
        sum_sats += sats
        if to == script and sats:
            paid.append((number, sats))
    if sum_sats > MAX_MONEY_SATS:
        raise FetchError(f"{STRANGE}: pays more than can exist")
    return tuple(paid)


def _read_inputs(vin: list[Any]) -> tuple[str, ...]:
    inputs = []
    for spending in vin:
        txid, vout = _members(spending, "txid", "vout")
        if type(txid) is not str or not _is_hash(txid) or not _is_int(vout, 0xFFFFFFFF):
            raise FetchError(f"{STRANGE}: an input without txid and vout")
        if len(vin) <= MAX_INPUTS:
            inputs.append(f"{txid}:{vout}")
    return tuple(inputs)


def _members(value: Any, *names: str) -> tuple[Any, ...]:
    if not isinstance(value, dict):
        raise FetchError(f"{STRANGE}: an input or output that is no object")
    return tuple(value.get(name) for name in names)


def _is_int(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most
