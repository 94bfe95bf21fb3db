"""What can go wrong in the sandbox.

SandboxError
├── Rejected       a transaction that a node would refuse, with Bitcoin Core's reject reason
├── BadRequest     a button pressed with something that cannot be done
├── ShopAway       the shop beside the chain cannot be asked
└── JournalError   the state directory cannot be read, or another sandbox uses it
"""


class SandboxError(Exception):
    """The root of the tree."""


class Rejected(SandboxError):
    """A transaction that is refused, in Bitcoin Core's words."""


class BadRequest(SandboxError):
    """Input of a person that cannot be acted on; the message says what to do instead."""


class ShopAway(SandboxError):
    """The shop does not answer, or not as it should."""


class JournalError(SandboxError):
    """The journal in the state directory cannot be used."""
