"""The errors of the sandbox."""


class SandboxError(Exception):
    """The base class of the sandbox's errors."""


class BadRequest(SandboxError):
    """The request is not possible.

    The message is what a node would say, or what to do instead.
    """


class ShopAway(SandboxError):
    """The shop does not respond, or its response is not the expected one."""


class JournalError(SandboxError):
    """The state directory cannot be read, or another sandbox uses it."""
