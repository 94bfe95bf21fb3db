"""Compresses pages that contain no secret."""

import zlib

from flask import Response, request

GZIP_FORMAT = 31  # the `wbits` of zlib for the gzip format (RFC 1952)


def compress(response: Response) -> Response:
    """Compresses a page with gzip if the browser accepts it.

    Call this function only for a page without secrets: if a page contains a secret and
    a text that an attacker chooses, its compressed length can reveal the secret (the
    attack BREACH).

    - An invoice's page, the page of its proofs, and error pages contain no secret, since
      everybody with the URL sees the same page.
    - The page of a payment link contains a secret if it shows visitors their last
      invoice.
    - The merchant's pages contain secrets.

    The response to a form (POST) stays uncompressed, since it may repeat text of the
    form.
    """
    if request.method == "POST":
        return response
    response.headers["Vary"] = "Accept-Encoding"
    if request.accept_encodings.quality("gzip") > 0:
        response.data = zlib.compress(response.data, 6, wbits=GZIP_FORMAT)
        response.headers["Content-Encoding"] = "gzip"
    return response
