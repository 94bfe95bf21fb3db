"""Lists the names in a request that an operation does not know, in a response header."""

import re
from collections.abc import Container, Iterable

from flask import Response, after_this_request, g

IGNORED_HEADER = "X-Ignored-Fields"
MOST_NAMES = 20
# A field name that can be listed in a header: printable ASCII without a comma, since commas
# separate the names, and short enough for every proxy.
_NAME = re.compile(r"[!-+\--~](?:[ -+\--~]{0,98}[!-+\--~])?")


def unknown_names(
    names: Iterable[str],
    known_names: Container[str],
    earlier: Iterable[str] = (),
) -> list[str]:
    """Returns `earlier`, followed by the names that are not in `known_names`.

    `earlier` has the results of earlier calls for the same request. The returned list
    has each name once, at most MOST_NAMES names, and no name that an HTTP header cannot
    contain.
    """
    unknown = list(earlier)
    for name in names:
        if len(unknown) == MOST_NAMES:
            break
        if name in known_names or name in unknown:
            continue
        if _NAME.fullmatch(name):
            unknown.append(name)
    return unknown


def note_ignored(names: Iterable[str], known_names: Container[str]) -> None:
    """Adds the names that are not in `known_names` to the header X-Ignored-Fields.

    This is a header of the response. An error response has it too.
    """
    ignored = unknown_names(names, known_names, g.get("ignored", ()))
    if ignored:
        g.ignored = ignored
        after_this_request(_add_ignored_header)


def _add_ignored_header(response: Response) -> Response:
    response.headers[IGNORED_HEADER] = ", ".join(g.ignored)
    return response
