"""Ports for servers that must have a certain one: known before they start, kept over a restart."""

import contextlib
import random
import socket

# Below those that a system gives to whoever asks for any (Linux: from 32768): of these hundreds
# are in use while tests run beside each other, and one that was free a moment ago may not be now.
OURS = range(20_000, 30_000)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that nobody is given by chance."""
    while True:
        port = random.SystemRandom().choice(OURS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
