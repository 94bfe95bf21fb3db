"""The errors of the sandbox."""


class SandboxError(Exception):
    """The base class of the sandbox's errors."""


class BadRequest(SandboxError):
    """The request cannot be fulfilled.

    The message is that of a Bitcoin node, or says what to do instead.
    """


class ShopAway(SandboxError):
    """The shop does not respond, or its response is not the expected one."""


class JournalError(SandboxError):
    """The state directory cannot be read, or another sandbox uses it."""
