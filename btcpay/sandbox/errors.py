"""What can go wrong in the sandbox."""


class SandboxError(Exception):
    """The root of the tree."""


class BadRequest(SandboxError):
    """What cannot be done: the message says what to do instead, or what a node says of it."""


class ShopAway(SandboxError):
    """The shop does not answer, or not as it should."""


class JournalError(SandboxError):
    """The state directory cannot be read, or another sandbox uses it."""
