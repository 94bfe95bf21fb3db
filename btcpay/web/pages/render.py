"""Answers to visitors: pages and their headers, errors as pages that say what to do, and files.

Script, style and icon are read and compressed once; browsers keep them by a hash in their address.
"""

import functools
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, current_app, request

from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES
from btcpay.values.errors import NotFound
from btcpay.values.money import btc_text
from btcpay.values.times import iso_ms
from btcpay.web.admission import WindowKeys, guard, visit_windows
from btcpay.web.errors import as_api_error, error_response
from btcpay.web.pages import languages
from btcpay.web.paths import add_pages
from btcpay.web.service import Service
from storage.queries import merchants

View = Callable[..., Response]
STYLE = "pages.css"
FOR_EVER = "public, max-age=31536000, immutable"


class Pages:
    """Renders the templates for one service.

    `frame_ancestors`: who may show them in a frame; unsaid, those of the settings. `message`: the
    template of errors. `own_style`: a second style sheet.
    """

    def __init__(
        self,
        service: Service,
        frame_ancestors: Sequence[str] | None = None,
        message: str = "message.html",
        own_style: str | None = None,
    ) -> None:
        self.service = service
        self._message = message
        self._styles = [STYLE, *([own_style] if own_style else [])]
        network = service.settings.network.name
        self._testing = None if network == "mainnet" else network
        framed_by = (
            service.settings.frame_ancestors
            if frame_ancestors is None
            else frame_ancestors
        )
        self._frame_ancestors = " ".join(framed_by)

    def policy(self, posts_to: str = "'self'", framed_by: str = "") -> str:
        """Nothing inline or from other hosts; who may frame it, `framed_by` too."""
        ancestors = f"{self._frame_ancestors} {framed_by}".strip() or "'none'"
        return (
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self';"
            f" connect-src 'self'; manifest-src 'self'; form-action {posts_to}; base-uri 'none';"
            f" frame-ancestors {ancestors}"
        )

    def brand(self, merchant_id: int) -> merchants.Shown:
        """The merchant's branding, None where not set; `seller` is a name in any case."""
        return self.service.db.only(merchants.BRAND_ON_PAGES, merchant_id=merchant_id)

    def only_brand(self) -> merchants.Shown | None:
        """The branding of the only merchant; None where several share the service."""
        known = self.service.db.rows(merchants.ALL)
        if len(known) == 1:
            return self.brand(known[0].id)
        return None

    def page(
        self,
        template: str,
        status: int = 200,
        brand: merchants.Shown | None = None,
        **values: Any,
    ) -> Response:
        language = languages.current_language()
        up = path_to_root()
        styles = [up + asset_address(style) for style in self._styles]
        if brand and brand.accent:
            styles.append(f"{up}accent/{brand.accent[1:]}.css")
        text = current_app.jinja_env.get_template(template).render(
            brand=brand,
            up=up,
            asset=lambda file: up + asset_address(file),
            styles=styles,
            testing=self._testing,
            has_mail=self.service.settings.has_mail,
            language=language,
            direction=formats.direction(language),
            languages=LANGUAGES,
            language_query=languages.language_query(),
            this_page_in=languages.this_page_in,
            f=formats,
            btc=functools.partial(formats.btc, language=language),
            btc_copied=btc_text,
            iso=iso_ms,
            **values,
        )
        response = Response(text, status, mimetype="text/html")
        # The browser fetches them while it reads the page.
        response.headers["Link"] = ", ".join(
            f"<{url}>; rel=preload; as=style" for url in styles
        )
        return response

    def error_page(
        self, error: Exception, brand: merchants.Shown | None = None
    ) -> Response:
        """The error as JSON when the script asks, otherwise as a page."""
        error = as_api_error(error)
        response = error_response(error)
        if request.path.endswith(("/status", "/price", "/proof.json")):
            return response
        status = response.status_code
        code = error.code
        page = self.page(self._message, status, brand, code=code, error=error)
        said = {name: response.headers.get(name) for name in ("Allow", "Retry-After")}
        page.headers.update({name: text for name, text in said.items() if text})
        return page

    def payer_error_page(self, error: Exception) -> Response:
        """`failed`; a visitor with a wrong address is told how to reach the seller."""
        return self.error_page(
            error, self.only_brand() if isinstance(error, NotFound) else None
        )

    def blueprint(
        self,
        name: str,
        import_name: str,
        views: Iterable[tuple[str, str, View]],
        counted: Callable[[Service], WindowKeys] = visit_windows,
    ) -> Blueprint:
        """Payers' pages (method, path, view), with their templates, headers and error pages.

        `counted`: the windows that count a visit.
        """
        made = Blueprint(name, import_name, template_folder="templates")
        add_pages(made, views)
        made.before_request(guard(self.service, lambda _: counted(self.service)))
        made.after_request(self.add_security_headers)
        made.register_error_handler(Exception, self.payer_error_page)
        return made

    def add_security_headers(self, response: Response) -> Response:
        """Nothing inline or from other hosts, no frame; no cache unless a view says so."""
        response.headers.setdefault("Content-Security-Policy", self.policy())
        response.headers["X-Content-Type-Options"] = "nosniff"
        # Not `no-referrer`: with it browsers send `Origin: null` for our own forms too.
        response.headers.setdefault("Referrer-Policy", "same-origin")
        response.headers.setdefault("Cache-Control", "no-store")
        return response


def path_to_root() -> str:
    """From this page to the root that the service stands under: `../` for each folder."""
    return "../" * (request.path.count("/") - 1)


def compress(response: Response) -> Response:
    """Compresses a page with gzip for a browser that accepts it.

    Only for a page without secrets: beside text that a stranger chooses, the length of what is sent
    tells a listener what the secret is (BREACH). An invoice's page is one: whoever knows its
    address may read all of it. A link's page shows a visitor his last invoice, and the merchant's
    pages show what only he may see; these are sent as they are.
    """
    response.headers["Vary"] = "Accept-Encoding"
    if request.accept_encodings.quality("gzip") > 0:
        response.data = zlib.compress(
            response.data, 6, wbits=31
        )  # in gzip's format (RFC 1952)
        response.headers["Content-Encoding"] = "gzip"
    return response


def cached_file(
    content: bytes | str, media_type: str, for_ever: bool = True
) -> Response:
    """A file, cached `for_ever` if its address changes with its content."""
    cache = FOR_EVER if for_ever else "no-store"
    return Response(content, content_type=media_type, headers={"Cache-Control": cache})


FOLDER = Path(__file__).resolve().parent / "static"
MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """One file as it is served, and compressed with gzip."""

    content: bytes
    gzipped: bytes
    media_type: str
    name: str


@functools.cache
def _files() -> dict[str, Asset]:
    """The files of `static`, each with the name that has its hash: `pages.1a2b3c4d5e.css`."""
    found = {}
    for path in FOLDER.iterdir():
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:10]
        name = f"{path.stem}.{digest}{path.suffix}"
        gzipped = zlib.compress(content, 9, wbits=31)  # in gzip's format (RFC 1952)
        found[path.name] = Asset(content, gzipped, MEDIA_TYPES[path.suffix], name)
    return found


def asset_address(file: str) -> str:
    """Relative to the root of the pages: the service may stand under a prefix."""
    return f"assets/{_files()[file].name}"


def find_asset(name: str) -> tuple[Asset, bool] | None:
    """The file of that name, and whether the hash in it is the file's own.

    A page of an older program may ask for a hash that is gone; then it gets today's file.
    """
    match = re.fullmatch(r"(\w+)\.[0-9a-f]{10}(\.\w+)", name)
    asset = _files().get(match[1] + match[2]) if match else None
    if asset:
        return (asset, asset.name == name)
    return None
