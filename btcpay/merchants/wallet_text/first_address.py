"""Compares the first addresses that a file gives with those of its accounts."""

import re
from collections.abc import Iterator, Sequence

from btcpay.bitcoin.address import script_of
from btcpay.bitcoin.wire import DecodeError
from btcpay.merchants.wallet_text.contents import (
    Candidate,
    TextProblem,
    TextRefused,
)
from btcpay.values.networks import Network

# The first address in Coldcard's generic file, and in Electrum's file.
_FIRST = (
    re.compile(r'"first"\s*:\s*"([0-9a-zA-Z]{20,90})"'),
    re.compile(r'"receiving"\s*:\s*\[\s*"([0-9a-zA-Z]{20,90})"'),
)
_BSMS = "BSMS 1.0"  # begins BIP129's file, whose last line is the first address


def refuse_other_first_address(
    candidates: Sequence[Candidate],
    text: str,
    network: Network,
) -> None:
    """Raises TextRefused if the first addresses that a file gives do not fit its accounts.

    `candidates` are the accounts in the file. The first address of each must be among
    those that the file gives. Does nothing if the file gives fewer valid addresses than
    it has accounts.
    """
    named_scripts = set()
    for address in _named_addresses(text):
        try:
            named_scripts.add(script_of(address, network))
        except DecodeError:
            continue
    if len(named_scripts) < len(candidates):
        return
    for candidate in candidates:
        if candidate.descriptor.script(0) not in named_scripts:
            raise TextRefused(
                "the first address in the file is not that of its key: check that all of it was"
                " copied, and not changed",
                TextProblem.DAMAGED,
            )


def _named_addresses(text: str) -> Iterator[str]:
    """Yields the texts at the places where wallets' files have a first address."""
    for pattern in _FIRST:
        for match in pattern.finditer(text):
            yield match.group(1)
    if text.startswith(_BSMS):
        yield text.rstrip().rpartition("\n")[2].strip()
