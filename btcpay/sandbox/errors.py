"""The sandbox's errors."""


class SandboxError(Exception):
    """The root of the tree."""


class BadRequest(SandboxError):
    """The message says what to do instead, or what a node would say."""


class ShopAway(SandboxError):
    """The shop does not answer, or not as it should."""


class JournalError(SandboxError):
    """The state directory cannot be read, or another sandbox uses it."""
