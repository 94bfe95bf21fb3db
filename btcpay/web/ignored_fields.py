"""`X-Ignored-Fields`: names that no operation reads, so that a mistyped one is noticed."""

import re
from collections.abc import Container, Iterable
from itertools import islice

from flask import Response, g

HEADER = "X-Ignored-Fields"
MOST_NAMES = 20
# Printable ASCII, since it is a header; no comma, since that separates names; and short enough for
# every proxy.
_NAME = re.compile(r"[!-+\--~](?:[ -+\--~]{0,98}[!-+\--~])?")


def unknown(names: Iterable[str], known: Container[str], before: Iterable[str] = ()) -> list[str]:
    """Those `before` and the unknown names, each once; no more than the header may have."""
    found = (name for name in names if name not in known and _NAME.fullmatch(name))
    return list(islice(dict.fromkeys((*before, *found)), MOST_NAMES))


def note(names: Iterable[str], known: Container[str]) -> None:
    """Makes the answer, whatever it is, name the fields that the operation does not know."""
    g.ignored = unknown(names, known, g.get("ignored", ()))


def show(response: Response) -> Response:
    """Names on the answer whatever was noted."""
    if names := g.get("ignored"):
        response.headers[HEADER] = ", ".join(names)
    return response
