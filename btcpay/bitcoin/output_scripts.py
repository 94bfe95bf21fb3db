"""Builds the multisig script, and the output key of taproot."""

import hashlib
from collections.abc import Sequence

from btcpay.bitcoin.extended_key import InvalidChild
from btcpay.bitcoin.secp256k1 import Point

OP_1 = 0x51
OP_CHECKMULTISIG = b"\xae"
PUSH_33_BYTES = b"\x21"


def multisig_script(threshold: int, public_keys: Sequence[bytes]) -> bytes:
    """Returns the multisig script that requires `threshold` signatures (BIP11).

    The keys keep their order.
    """
    pushes = [_push_number(threshold)]
    pushes += [PUSH_33_BYTES + key for key in public_keys]
    pushes.append(_push_number(len(public_keys)))
    return b"".join(pushes) + OP_CHECKMULTISIG


def _push_number(number: int) -> bytes:
    """Returns the script bytes that push a number from 1 to 20."""
    if number <= 16:
        return bytes([OP_1 + number - 1])
    return bytes([1, number])


def taproot_output_key(internal: Point) -> bytes:
    """Returns the x-only output key (32 bytes) of a P2TR output without scripts.

    `internal` is the internal key. Source: BIP341, BIP86. Raises InvalidChild if the
    tweaked key is invalid.
    """
    x = internal.x.to_bytes(32, "big")
    tag = hashlib.sha256(b"TapTweak").digest()
    digest = hashlib.sha256(tag + tag + x).digest()
    tweak = int.from_bytes(digest, "big")
    try:
        output = internal.with_even_y().add(tweak)  # internal key + tweak * G
    except ValueError:
        raise InvalidChild(
            "this internal key has no valid taproot key: use the next index"
        ) from None
    return output.x.to_bytes(32, "big")
