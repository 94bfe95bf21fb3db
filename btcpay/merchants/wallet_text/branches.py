"""Selects the receiving accounts of a text, without change branches and repetitions."""

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.merchants.wallet_text.contents import Candidate, Contents

CHANGE = 1  # the last step of change addresses (BIP44)
RECEIVING = (0,)  # the steps from an account's key to its receiving addresses
CHANGE_LEFT_OUT = "the change branch, whose addresses are the wallet's own"


def receiving_accounts(contents: Contents) -> list[Candidate]:
    """Returns the accounts in the text, each once, without their change branches.

    A change branch whose receiving branch is not in the text is returned too, unless
    the file calls it internal.
    """
    candidates = sorted(contents.candidates, key=lambda each: not each.has_checksum)
    candidates.sort(key=_is_change)
    remaining: list[Candidate] = []
    pairs = set()
    scripts = set()
    for candidate in candidates:
        descriptor = candidate.descriptor
        pair = _pair(descriptor)
        script = (pair, tuple(key.steps for key in descriptor.keys))
        if _is_change(candidate) and (pair in pairs or candidate.is_internal):
            contents.leave_out(CHANGE_LEFT_OUT)
        elif script not in scripts:
            remaining.append(candidate)
        pairs.add(pair)
        scripts.add(script)
    order = [_pair(candidate.descriptor) for candidate in contents.candidates]
    remaining.sort(key=lambda each: order.index(_pair(each.descriptor)))
    return remaining


def _is_change(candidate: Candidate) -> bool:
    steps = [key.steps[-1:] for key in candidate.descriptor.keys]
    return candidate.is_internal or all(step == (CHANGE,) for step in steps)


def _pair(descriptor: Descriptor) -> object:
    """Returns a value that is equal for the two branches of one account, and for no others."""
    keys = [(key.text, key.steps[:-1]) for key in descriptor.keys]
    if descriptor.form[-1] == "sortedmulti":
        keys.sort()
    return (descriptor.form, descriptor.threshold, tuple(keys))
