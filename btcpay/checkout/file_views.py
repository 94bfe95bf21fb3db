"""The views of the files that public pages need: logos, colours, scripts and styles."""

import re

from flask import Response, request

from btcpay.values.colours import button_text
from btcpay.values.errors import NotFound
from btcpay.web.pages.assets import file_response, find_asset
from btcpay.web.service import Service
from storage.queries import merchants


class FileViews:
    """The views of files, most of which browsers may cache for ever."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def show_logo(self, sha256: str) -> Response:
        """Returns a merchant's logo, with the media type that was stored with it.

        Raises NotFound if no logo has this hash.
        """
        row = None
        if re.fullmatch("[0-9a-f]{64}", sha256):
            row = self.service.db.get_or_none(merchants.LOGO, logo_sha256=sha256)
        if row is None:
            raise NotFound("there is no such logo")
        return file_response(row.logo or b"", row.logo_type or "")

    def show_accent(self, name: str) -> Response:
        """Returns the style sheet that sets a colour in elements of the class `branded`.

        `name` is the colour with a suffix, such as `2563eb.css`. Raises NotFound for
        any other name.
        """
        if not re.fullmatch(r"[0-9a-f]{6}\.css", name):
            raise NotFound("there is no such colour")
        accent = f"#{name.removesuffix('.css')}"
        colours = f"--accent:{accent};--on-accent:{button_text(accent)}"
        return file_response(f".branded{{{colours}}}\n", "text/css")

    def show_asset(self, name: str) -> Response:
        """Returns a style sheet, script or icon, compressed if the browser accepts gzip.

        Raises NotFound if there is no such file.
        """
        match = find_asset(name)
        if match is None:
            raise NotFound("there is no such file")
        asset = match.asset
        accepts_gzip = request.accept_encodings.quality("gzip") > 0
        content = asset.content
        if accepts_gzip:
            content = asset.gzipped
        # The URL of a former version of the file stays valid, but must not be cached for ever.
        response = file_response(
            content, asset.media_type, is_immutable=match.is_current
        )
        if accepts_gzip:
            response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        return response
