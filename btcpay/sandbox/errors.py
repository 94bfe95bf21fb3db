"""The errors of the sandbox."""


class SandboxError(Exception):
    """The base class of the sandbox's errors."""


class BadRequest(SandboxError):
    """The requested action is not possible.

    The message is Bitcoin Core's text for this error, or a sentence for the person.
    """


class ShopAway(SandboxError):
    """The shop does not respond, or its response is not the expected one."""


class JournalError(SandboxError):
    """The journal of the chain is damaged, or another sandbox uses it."""
