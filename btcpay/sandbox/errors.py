"""What can go wrong in the sandbox."""


class SandboxError(Exception):
    """The root of the tree."""


class Rejected(SandboxError):
    """A transaction that a node would refuse, in Bitcoin Core's words."""


class BadRequest(SandboxError):
    """Input of a person that cannot be acted on; the message says what to do instead."""


class ShopAway(SandboxError):
    """The shop does not answer, or not as it should."""


class JournalError(SandboxError):
    """The state directory cannot be read, or another sandbox uses it."""
