"""One HTTP GET with a limit on time, size and belief; shared by explorers and price sources."""

import json
import time
from decimal import Decimal
from typing import Any

import requests

from btcpay import __version__

CONNECT_TIMEOUT_S = 3
USER_AGENT = f"btcpay/{__version__}"
_PIECE_BYTES = 65536


class FetchError(Exception):
    """The answer could not be had; `status` is the HTTP status when there was one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def new_session(connections: int = 1) -> requests.Session:
    """A session that keeps up to `connections` connections open to each host."""
    session = requests.Session()
    session.headers["User-Agent"] = USER_AGENT
    session.max_redirects = 3
    adapter = requests.adapters.HTTPAdapter(pool_connections=8, pool_maxsize=connections)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def get(session: requests.Session, url: str, timeout_s: float, max_bytes: int) -> bytes:
    """The body of a 200 answer, complete within `timeout_s` of wall time and `max_bytes`.

    Raises FetchError for every other outcome: no connection, a time-out, a broken or oversized
    body, another status. The message names host and cause, never the query's secrets.
    """
    deadline_s = time.monotonic() + timeout_s
    pieces: list[bytes] = []
    try:
        timeouts = (min(CONNECT_TIMEOUT_S, timeout_s), timeout_s)
        with session.get(url, timeout=timeouts, stream=True) as response:
            if response.status_code != 200:
                raise FetchError(f"answered HTTP {response.status_code}", response.status_code)
            for piece in response.iter_content(_PIECE_BYTES):
                pieces.append(piece)
                if sum(map(len, pieces)) > max_bytes:
                    raise FetchError(f"answered more than {max_bytes} bytes")
                # The read time-out starts anew with each byte; this one does not.
                if time.monotonic() > deadline_s:
                    raise FetchError(f"took longer than {timeout_s} s")
    except (requests.RequestException, OSError, ValueError) as error:
        raise FetchError(f"could not be asked: {type(error).__name__}") from error
    return b"".join(pieces)


def parse_json(body: bytes) -> Any:
    """The JSON value with exact numbers. Raises FetchError when it is none."""
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise FetchError("answered no JSON") from error
