"""Renders HTML pages with their security headers, and shows errors as pages."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flask import Blueprint, Flask, Response, current_app, request

from btcpay.languages import formats
from btcpay.languages.catalogs import LANGUAGES, catalog
from btcpay.settings.logs import REQUEST_ID
from btcpay.values.errors import NotFound
from btcpay.values.money import btc_text
from btcpay.values.times import iso_ms
from btcpay.web.admission import WindowKeys, guard, visit_windows
from btcpay.web.errors import as_api_error, error_response
from btcpay.web.pages import languages
from btcpay.web.pages.assets import asset_path
from btcpay.web.pages.compression import compress
from btcpay.web.paths import add_pages
from btcpay.web.service import Service
from storage.queries import merchants

View = Callable[..., Response]
STYLE = "pages.css"
# The pages' script fetches these paths. Their errors are JSON.
_JSON_PATHS = ("/status", "/price", "/proof.json")


class Pages:
    """Renders HTML pages from templates.

    `frame_ancestors` are the sites that may embed the pages in a frame; None means the
    sites that the settings name. `message` is the template of error pages. `own_style`
    is the file name of an additional style sheet.
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
        self._styles = [STYLE]
        if own_style:
            self._styles.append(own_style)
        self._test_network = None
        network = service.settings.network.name
        if network != "mainnet":
            self._test_network = network
        if frame_ancestors is None:
            frame_ancestors = service.settings.frame_ancestors
        self._frame_ancestors = " ".join(frame_ancestors)

    def policy(self, posts_to: str = "'self'", framed_by: str = "") -> str:
        """Returns the header Content-Security-Policy of a page.

        It allows no inline code, and nothing from other hosts. `posts_to` are the URLs
        to which forms may be sent. `framed_by` is an additional site that may embed the
        page in a frame.
        """
        ancestors = f"{self._frame_ancestors} {framed_by}".strip() or "'none'"
        return (
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self';"
            f" connect-src 'self'; manifest-src 'self'; form-action {posts_to}; base-uri 'none';"
            f" frame-ancestors {ancestors}"
        )

    def brand(self, merchant_id: int) -> merchants.BrandOnPages:
        """Returns the merchant's branding, such as name, colour and logo.

        A field that the merchant has not set is None. Only `seller`, the name to show,
        is always set.
        """
        return self.service.db.get(merchants.BRAND_ON_PAGES, merchant_id=merchant_id)

    def only_brand(self) -> merchants.BrandOnPages | None:
        """Returns the branding of the only merchant; None unless there is exactly one."""
        rows = self.service.db.rows(merchants.ALL)
        if len(rows) == 1:
            return self.brand(rows[0].id)
        return None

    def page(
        self,
        template: str,
        status: int = 200,
        brand: merchants.BrandOnPages | None = None,
        **values: Any,
    ) -> Response:
        """Renders a template with `values`, and with the values that every template gets.

        `brand` is the branding of the merchant whose page this is; None for a page of no
        merchant.
        """
        language = languages.current_language()
        up = path_to_root()
        styles = [up + asset_path(style) for style in self._styles]
        if brand and brand.accent:
            styles.append(f"{up}accent/{brand.accent[1:]}.css")
        text = current_app.jinja_env.get_template(template).render(
            brand=brand,
            up=up,
            asset=lambda file: up + asset_path(file),
            styles=styles,
            testing=self._test_network,
            has_mail=functools.cache(self.service.has_mail),
            has_password=self.service.owner_password.is_set,
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
        # Browsers can then fetch the style sheets before they have read the page.
        preloads = [f"<{url}>; rel=preload; as=style" for url in styles]
        response.headers["Link"] = ", ".join(preloads)
        return response

    def error_page(
        self,
        error: Exception,
        brand: merchants.BrandOnPages | None = None,
    ) -> Response:
        """Returns the response to an error: a page, or JSON on paths in _JSON_PATHS.

        `brand` is the branding of the merchant whose page this is; None for a page of no
        merchant.
        """
        api_error = as_api_error(error)
        response = error_response(api_error)
        if request.path.endswith(_JSON_PATHS):
            return response
        page = self.page(
            self._message,
            response.status_code,
            brand,
            code=api_error.code,
            request_id=REQUEST_ID.get(),
        )
        for name in ("Allow", "Retry-After"):
            value = response.headers.get(name)
            if value:
                page.headers[name] = value
        return page

    def payer_error_page(self, error: Exception) -> Response:
        """Returns `error_page` for payers, compressed if it is a page.

        If the error is NotFound, and the service has only one merchant, the page shows
        that merchant's branding. So the payer sees how to reach the seller.
        """
        brand = None
        if isinstance(error, NotFound):
            brand = self.only_brand()
        page = self.error_page(error, brand)
        if page.mimetype == "text/html":
            return compress(page)
        return page

    def blueprint(
        self,
        name: str,
        import_name: str,
        views: Iterable[tuple[str, str, View]],
        windows: Callable[[Service], WindowKeys] = visit_windows,
    ) -> Blueprint:
        """Returns a Flask blueprint of pages for payers, with security headers.

        `views` has the method, the path and the view function of each page. `windows`
        returns the rate-limit windows that count a visit.
        """
        blueprint = Blueprint(name, import_name, template_folder="templates")
        add_pages(blueprint, views)
        blueprint.before_request(guard(self.service, lambda _: windows(self.service)))
        blueprint.after_request(self.add_security_headers)
        blueprint.register_error_handler(Exception, self.payer_error_page)
        return blueprint

    def add_security_headers(self, response: Response) -> Response:
        """Adds five security headers to a response.

        A view may set other values of these headers beforehand, except for
        X-Content-Type-Options.
        """
        response.headers.setdefault("Permissions-Policy", "camera=()")
        response.headers.setdefault("Content-Security-Policy", self.policy())
        response.headers["X-Content-Type-Options"] = "nosniff"
        # With `no-referrer` browsers would send `Origin: null` for this site's own
        # forms.
        response.headers.setdefault("Referrer-Policy", "same-origin")
        response.headers.setdefault("Cache-Control", "no-store")
        return response


def path_to_root() -> str:
    """Returns the relative path from this page to the service's root, such as `../../`."""
    return "../" * (request.path.count("/") - 1)


def warm(app: Flask) -> None:
    """Loads templates, translations and static files, so that the first visit is fast.

    Compiles only the templates of pages for payers, which are in no subfolder. Takes
    about 0.1 s.
    """
    for template in app.jinja_env.list_templates(filter_func=_is_for_payers):
        app.jinja_env.get_template(template)
    for language in LANGUAGES:
        catalog(language)
    asset_path(STYLE)


def _is_for_payers(template: str) -> bool:
    return "/" not in template
