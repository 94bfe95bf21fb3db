"""Selects the receiving accounts of a text, without change branches and repetitions.

An account has two branches: receiving addresses and change addresses (BIP44).
"""

from btcpay.merchants.wallet_text.contents import Candidate, Contents

CHANGE = 1  # the last step of change addresses (BIP44)
RECEIVING = (0,)  # the steps from an account's key to its receiving addresses
CHANGE_LEFT_OUT = "the change branch, whose addresses are the wallet's own"


def receiving_accounts(contents: Contents) -> list[Candidate]:
    """Returns the accounts in the text, each once, without their change branches.

    They are in the order of the text. If only the change branch of an account is in the
    text, the branch is returned too, unless the file says that it is for change.
    """
    receiving: list[Candidate] = []
    known_accounts = set()
    known_branches = set()
    # Receiving branches come first, so that each change branch finds its account known.
    for candidate in sorted(contents.candidates, key=_priority):
        account = _account_id(candidate)
        branch = (account, tuple(key.steps for key in candidate.descriptor.keys))
        is_account_known = account in known_accounts
        is_needless = is_account_known or candidate.is_internal
        if _is_change(candidate) and is_needless:
            contents.leave_out(CHANGE_LEFT_OUT)
        elif branch not in known_branches:
            receiving.append(candidate)
        known_accounts.add(account)
        known_branches.add(branch)
    accounts_in_text = [_account_id(candidate) for candidate in contents.candidates]

    def position_in_text(candidate: Candidate) -> int:
        return accounts_in_text.index(_account_id(candidate))

    return sorted(receiving, key=position_in_text)


def _priority(candidate: Candidate) -> tuple[bool, bool]:
    """Returns the sort key: receiving branches first, then those with a checksum."""
    return (_is_change(candidate), not candidate.has_checksum)


def _is_change(candidate: Candidate) -> bool:
    """True if the file or the paths say that the addresses are for change."""
    steps = [key.steps[-1:] for key in candidate.descriptor.keys]
    return candidate.is_internal or all(step == (CHANGE,) for step in steps)


def _account_id(candidate: Candidate) -> object:
    """Returns a value that is equal for the two branches of one account, and for no others."""
    descriptor = candidate.descriptor
    keys = [(key.text, key.steps[:-1]) for key in descriptor.keys]
    if descriptor.form[-1] == "sortedmulti":
        keys.sort()
    return (descriptor.form, descriptor.threshold, tuple(keys))
